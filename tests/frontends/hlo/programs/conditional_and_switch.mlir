module @jit_conditional_and_switch attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<4xf32>
    %2 = stablehlo.compare GT, %arg1, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.convert %2 : (tensor<i1>) -> tensor<i32>
    %4 = "stablehlo.case"(%3) ({
      %7 = stablehlo.subtract %arg0, %1 : tensor<4xf32>
      stablehlo.return %7 : tensor<4xf32>
    }, {
      %7 = stablehlo.add %arg0, %1 : tensor<4xf32>
      stablehlo.return %7 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %5 = stablehlo.clamp %c_0, %arg1, %c : tensor<i32>
    %6 = "stablehlo.case"(%5) ({
      %7 = stablehlo.sine %arg0 : tensor<4xf32>
      stablehlo.return %7 : tensor<4xf32>
    }, {
      %7 = stablehlo.cosine %arg0 : tensor<4xf32>
      stablehlo.return %7 : tensor<4xf32>
    }, {
      %7 = stablehlo.dot_general %arg0, %1, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %9 = stablehlo.multiply %8, %arg0 : tensor<4xf32>
      stablehlo.return %9 : tensor<4xf32>
    }, {
      %7 = stablehlo.negate %arg0 : tensor<4xf32>
      stablehlo.return %7 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %4, %6 : tensor<4xf32>, tensor<4xf32>
  }
}
