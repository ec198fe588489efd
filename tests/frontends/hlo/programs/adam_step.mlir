module @jit_adam_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<6x2xf32>, %arg2: tensor<6x2xf32>, %arg3: tensor<6x2xf32>, %arg4: tensor<i32>) -> (tensor<6x2xf32> {jax.result_info = "result[0]"}, tensor<6x2xf32> {jax.result_info = "result[1]"}, tensor<6x2xf32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_0 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_2 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_5 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %2 = stablehlo.multiply %1, %0 : tensor<4x2xf32>
    %3 = stablehlo.divide %cst_6, %cst_5 : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %5 = stablehlo.multiply %4, %2 : tensor<4x2xf32>
    %6 = stablehlo.dot_general %5, %arg0, contracting_dims = [0] x [0] : (tensor<4x2xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<2x6xf32>) -> tensor<6x2xf32>
    %8 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %9 = stablehlo.multiply %8, %arg2 : tensor<6x2xf32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %11 = stablehlo.multiply %10, %7 : tensor<6x2xf32>
    %12 = stablehlo.add %9, %11 : tensor<6x2xf32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %14 = stablehlo.multiply %13, %arg3 : tensor<6x2xf32>
    %15 = stablehlo.multiply %7, %7 : tensor<6x2xf32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %17 = stablehlo.multiply %16, %15 : tensor<6x2xf32>
    %18 = stablehlo.add %14, %17 : tensor<6x2xf32>
    %19 = stablehlo.convert %arg4 : (tensor<i32>) -> tensor<f32>
    %20 = stablehlo.power %cst_4, %19 : tensor<f32>
    %21 = stablehlo.subtract %cst_6, %20 : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %23 = stablehlo.divide %12, %22 : tensor<6x2xf32>
    %24 = stablehlo.convert %arg4 : (tensor<i32>) -> tensor<f32>
    %25 = stablehlo.power %cst_2, %24 : tensor<f32>
    %26 = stablehlo.subtract %cst_6, %25 : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %28 = stablehlo.divide %18, %27 : tensor<6x2xf32>
    %29 = stablehlo.sqrt %28 : tensor<6x2xf32>
    %30 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %31 = stablehlo.add %29, %30 : tensor<6x2xf32>
    %32 = stablehlo.divide %23, %31 : tensor<6x2xf32>
    %33 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
    %34 = stablehlo.multiply %33, %32 : tensor<6x2xf32>
    %35 = stablehlo.subtract %arg1, %34 : tensor<6x2xf32>
    return %35, %12, %18 : tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>
  }
}
