module @jit_convolution_channels_last attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x9x7x4xf32>, %arg1: tensor<3x3x4x6xf32>) -> (tensor<2x5x7x6xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x5x7x6xf32>
    return %0 : tensor<2x5x7x6xf32>
  }
}
