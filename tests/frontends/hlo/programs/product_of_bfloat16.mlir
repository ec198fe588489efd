module @jit_product_of_bfloat16 attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xbf16>, %arg1: tensor<6x5xbf16>) -> (tensor<4x5xf32> {jax.result_info = "result[0]"}, tensor<4x6xbf16> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x6xbf16>, tensor<6x5xbf16>) -> tensor<4x5xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<4x6xbf16>
    %2 = stablehlo.add %arg0, %1 : tensor<4x6xbf16>
    return %0, %2 : tensor<4x5xf32>, tensor<4x6xbf16>
  }
}
