module @jit_movement attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32> {jax.result_info = "result[0]"}, tensor<3x5x4xf32> {jax.result_info = "result[1]"}, tensor<3x4x11xf32> {jax.result_info = "result[2]"}, tensor<3x3x4xf32> {jax.result_info = "result[3]"}, tensor<2x6x4xf32> {jax.result_info = "result[4]"}, tensor<2x3x4xf32> {jax.result_info = "result[5]"}, tensor<2x3x4xf32> {jax.result_info = "result[6]"}, tensor<2x3x4xf32> {jax.result_info = "result[7]"}, tensor<2x6x4xf32> {jax.result_info = "result[8]"}, tensor<2x2x3x4xf32> {jax.result_info = "result[9]"}) {
    %cst = stablehlo.constant dense<7.000000e+00> : tensor<f32>
    %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %1 = call @_pad(%arg0) : (tensor<2x3x4xf32>) -> tensor<3x5x4xf32>
    %2 = stablehlo.pad %arg0, %cst, low = [0, -1, 1], high = [0, 2, 0], interior = [1, 0, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3x4x11xf32>
    %3 = stablehlo.slice %arg0 [0:1, 0:3, 0:4] : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
    %4 = stablehlo.concatenate %arg0, %3, dim = 0 : (tensor<2x3x4xf32>, tensor<1x3x4xf32>) -> tensor<3x3x4xf32>
    %5 = stablehlo.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<1x2x1x3x1x4xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2, 3, 4, 5] : (tensor<1x2x1x3x1x4xf32>) -> tensor<1x2x2x3x1x4xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x2x2x3x1x4xf32>) -> tensor<2x6x4xf32>
    %8 = call @_roll_static(%arg0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %9 = call @tril(%arg0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %10 = call @_flip_1(%arg0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %11 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 3] : (tensor<2x3x4xf32>) -> tensor<2x3x2x4xf32>
    %12 = stablehlo.reshape %11 : (tensor<2x3x2x4xf32>) -> tensor<2x6x4xf32>
    %13 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2, 3] : (tensor<2x3x4xf32>) -> tensor<2x1x3x4xf32>
    %14 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2, 3] : (tensor<2x3x4xf32>) -> tensor<2x1x3x4xf32>
    %15 = stablehlo.concatenate %13, %14, dim = 1 : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>) -> tensor<2x2x3x4xf32>
    return %0, %1, %2, %4, %7, %8, %9, %10, %12, %15 : tensor<4x2x3xf32>, tensor<3x5x4xf32>, tensor<3x4x11xf32>, tensor<3x3x4xf32>, tensor<2x6x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x6x4xf32>, tensor<2x2x3x4xf32>
  }
  func.func private @_pad(%arg0: tensor<2x3x4xf32>) -> tensor<3x5x4xf32> {
    %0 = stablehlo.slice %arg0 [0:1, 0:3, 0:4] : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
    %1 = call @_flip(%0) : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
    %2 = stablehlo.concatenate %arg0, %1, dim = 0 : (tensor<2x3x4xf32>, tensor<1x3x4xf32>) -> tensor<3x3x4xf32>
    %3 = stablehlo.slice %2 [0:3, 1:3, 0:4] : (tensor<3x3x4xf32>) -> tensor<3x2x4xf32>
    %4 = call @_flip_0(%3) : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
    %5 = stablehlo.concatenate %4, %2, dim = 1 : (tensor<3x2x4xf32>, tensor<3x3x4xf32>) -> tensor<3x5x4xf32>
    return %5 : tensor<3x5x4xf32>
  }
  func.func private @_flip(%arg0: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<1x3x4xf32>
    return %0 : tensor<1x3x4xf32>
  }
  func.func private @_flip_0(%arg0: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<3x2x4xf32>
    return %0 : tensor<3x2x4xf32>
  }
  func.func private @_roll_static(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.slice %arg0 [0:2, 0:3, 2:4] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
    %1 = stablehlo.slice %arg0 [0:2, 0:3, 0:2] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 2 : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
    return %2 : tensor<2x3x4xf32>
  }
  func.func private @tril(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.iota dim = 0 : tensor<3x4xi32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %2 = stablehlo.add %0, %1 : tensor<3x4xi32>
    %3 = stablehlo.iota dim = 1 : tensor<3x4xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<3x4xi1>) -> tensor<2x3x4xi1>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %7 = stablehlo.select %5, %arg0, %6 : tensor<2x3x4xi1>, tensor<2x3x4xf32>
    return %7 : tensor<2x3x4xf32>
  }
  func.func private @_flip_1(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
}
