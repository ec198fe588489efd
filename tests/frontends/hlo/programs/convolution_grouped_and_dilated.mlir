module @jit_convolution_grouped_and_dilated attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x9xf32>, %arg1: tensor<6x2x3xf32>) -> (tensor<2x6x10xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[2, 3]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<2x6x9xf32>, tensor<6x2x3xf32>) -> tensor<2x6x10xf32>
    return %0 : tensor<2x6x10xf32>
  }
}
