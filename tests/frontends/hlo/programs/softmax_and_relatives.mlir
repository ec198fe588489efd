module @jit_softmax_and_relatives attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x7xf32>) -> (tensor<5x7xf32> {jax.result_info = "result[0]"}, tensor<5x7xf32> {jax.result_info = "result[1]"}, tensor<5xf32> {jax.result_info = "result[2]"}, tensor<5x7xf32> {jax.result_info = "result[3]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<5xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<5x7xf32>
    %6 = stablehlo.exponential %5 : tensor<5x7xf32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %10 = stablehlo.divide %6, %9 : tensor<5x7xf32>
    %11 = call @log_softmax(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %12 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %14 = stablehlo.maximum %13, %12 : tensor<5xf32>
    %15 = stablehlo.is_finite %14 : (tensor<5xf32>) -> tensor<5xi1>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %17 = stablehlo.select %15, %14, %16 : tensor<5xi1>, tensor<5xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %20 = stablehlo.subtract %arg0, %19 : tensor<5x7xf32>
    %21 = stablehlo.exponential %20 : tensor<5x7xf32>
    %22 = stablehlo.reduce(%21 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %23 = stablehlo.abs %22 : tensor<5xf32>
    %24 = stablehlo.log %23 : tensor<5xf32>
    %25 = stablehlo.add %24, %17 : tensor<5xf32>
    %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %27 = stablehlo.compare GT, %arg0, %26, FLOAT : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %28 = call @_where(%27, %arg0, %cst_0) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    %29 = stablehlo.reduce(%28 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %30 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %31 = stablehlo.maximum %30, %29 : tensor<5xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %33 = call @_where_0(%27, %arg0, %cst_0) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %35 = stablehlo.subtract %33, %34 : tensor<5x7xf32>
    %36 = stablehlo.exponential %35 : tensor<5x7xf32>
    %37 = call @_where(%27, %36, %cst) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    %38 = stablehlo.reduce(%37 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %41 = stablehlo.divide %36, %40 : tensor<5x7xf32>
    %42 = call @_where_1(%27, %41, %c) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<i32>) -> tensor<5x7xf32>
    return %10, %11, %25, %42 : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5xf32>, tensor<5x7xf32>
  }
  func.func private @log_softmax(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [0] : (tensor<5x7xf32>, tensor<f32>) -> tensor<7xf32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<7xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<7xf32>) -> tensor<1x7xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x7xf32>) -> tensor<5x7xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<5x7xf32>
    %6 = stablehlo.exponential %5 : tensor<5x7xf32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<5x7xf32>, tensor<f32>) -> tensor<7xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [1] : (tensor<7xf32>) -> tensor<1x7xf32>
    %9 = stablehlo.log %8 : tensor<1x7xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x7xf32>) -> tensor<5x7xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<5x7xf32>
    return %11 : tensor<5x7xf32>
  }
  func.func private @_where(%arg0: tensor<5x7xi1>, %arg1: tensor<5x7xf32>, %arg2: tensor<f32>) -> tensor<5x7xf32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<5x7xi1>, tensor<5x7xf32>
    return %1 : tensor<5x7xf32>
  }
  func.func private @_where_0(%arg0: tensor<5x7xi1>, %arg1: tensor<5x7xf32>, %arg2: tensor<f32>) -> tensor<5x7xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<5x7xi1>, tensor<5x7xf32>
    return %2 : tensor<5x7xf32>
  }
  func.func private @_where_1(%arg0: tensor<5x7xi1>, %arg1: tensor<5x7xf32>, %arg2: tensor<i32>) -> tensor<5x7xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<5x7xi1>, tensor<5x7xf32>
    return %2 : tensor<5x7xf32>
  }
}
