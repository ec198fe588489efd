module @jit_einsum attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x5xf32>, %arg1: tensor<3x5x2xf32>) -> (tensor<2x3x4xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg1, %arg0, batching_dims = [0] x [0], contracting_dims = [1] x [2] : (tensor<3x5x2xf32>, tensor<3x4x5xf32>) -> tensor<3x2x4xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
    %2 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<3x5x2xf32>, tensor<f32>) -> tensor<3x5xf32>
    %3 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<3x5xf32>
    %4 = stablehlo.dot_general %3, %2, contracting_dims = [0, 1] x [0, 1] : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<f32>
    %5 = stablehlo.slice %arg0 [0:3, 0:4, 0:4] : (tensor<3x4x5xf32>) -> tensor<3x4x4xf32>
    %6 = stablehlo.iota dim = 0 : tensor<4x4xui32>
    %7 = stablehlo.iota dim = 1 : tensor<4x4xui32>
    %8 = stablehlo.compare EQ, %6, %7, UNSIGNED : (tensor<4x4xui32>, tensor<4x4xui32>) -> tensor<4x4xi1>
    %9 = stablehlo.broadcast_in_dim %8, dims = [1, 2] : (tensor<4x4xi1>) -> tensor<3x4x4xi1>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4x4xf32>
    %11 = stablehlo.select %9, %5, %10 : tensor<3x4x4xi1>, tensor<3x4x4xf32>
    %12 = stablehlo.reduce(%11 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<3x4x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    return %1, %4, %12 : tensor<2x3x4xf32>, tensor<f32>, tensor<3x4xf32>
  }
}
