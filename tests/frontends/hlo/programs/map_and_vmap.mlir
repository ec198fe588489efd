module @jit_map_and_vmap attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x4xf32>) -> (tensor<5x4xf32> {jax.result_info = "result[0]"}, tensor<5x5xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<5> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %1:3 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %c_1, %iterArg_3 = %0) : tensor<5x4xf32>, tensor<i32>, tensor<5x4xf32>
    cond {
      %4 = stablehlo.compare LT, %iterArg_2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_2) : (tensor<5x4xf32>, tensor<i32>) -> tensor<4xf32>
      %5 = func.call @closed_call(%4) : (tensor<4xf32>) -> tensor<4xf32>
      %6 = func.call @dynamic_update_index_in_dim(%iterArg_3, %5, %iterArg_2) : (tensor<5x4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<5x4xf32>
      %7 = stablehlo.add %iterArg_2, %c : tensor<i32>
      stablehlo.return %iterArg, %7, %6 : tensor<5x4xf32>, tensor<i32>, tensor<5x4xf32>
    }
    %2 = stablehlo.slice %arg0 [0:5, 0:2] : (tensor<5x4xf32>) -> tensor<5x2xf32>
    %3 = call @convolve(%arg0, %2) : (tensor<5x4xf32>, tensor<5x2xf32>) -> tensor<5x5xf32>
    return %1#2, %3 : tensor<5x4xf32>, tensor<5x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<5x4xf32>, %arg1: tensor<i32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 4] : (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @closed_call(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.divide %arg0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<5x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i32>) -> tensor<5x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<5x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>
    return %1 : tensor<5x4xf32>
  }
  func.func private @convolve(%arg0: tensor<5x4xf32>, %arg1: tensor<5x2xf32>) -> tensor<5x5xf32> {
    %0 = call @_conv(%arg0, %arg1) : (tensor<5x4xf32>, tensor<5x2xf32>) -> tensor<5x5xf32>
    return %0 : tensor<5x5xf32>
  }
  func.func private @_conv(%arg0: tensor<5x4xf32>, %arg1: tensor<5x2xf32>) -> tensor<5x5xf32> {
    %0 = call @_flip(%arg1) : (tensor<5x2xf32>) -> tensor<5x2xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 3] : (tensor<5x4xf32>) -> tensor<5x1x1x4xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 3] : (tensor<5x2xf32>) -> tensor<5x1x1x2xf32>
    %3 = stablehlo.transpose %1, dims = [1, 0, 2, 3] : (tensor<5x1x1x4xf32>) -> tensor<1x5x1x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x5x1x4xf32>) -> tensor<1x5x4xf32>
    %5 = stablehlo.reshape %2 : (tensor<5x1x1x2xf32>) -> tensor<5x1x2xf32>
    %6 = stablehlo.convolution(%4, %5) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 5 : i64} : (tensor<1x5x4xf32>, tensor<5x1x2xf32>) -> tensor<1x5x5xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x5x5xf32>) -> tensor<1x5x1x5xf32>
    %8 = stablehlo.transpose %7, dims = [1, 0, 2, 3] : (tensor<1x5x1x5xf32>) -> tensor<5x1x1x5xf32>
    %9 = stablehlo.reshape %8 : (tensor<5x1x1x5xf32>) -> tensor<5x5xf32>
    return %9 : tensor<5x5xf32>
  }
  func.func private @_flip(%arg0: tensor<5x2xf32>) -> tensor<5x2xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<5x2xf32>
    return %0 : tensor<5x2xf32>
  }
}
