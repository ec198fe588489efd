module @jit_attention attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5x3x8xf32>, %arg1: tensor<2x7x3x8xf32>, %arg2: tensor<2x7x3x8xf32>) -> (tensor<2x5x3x8xf32> {jax.result_info = "result[0]"}, tensor<2x5x3x8xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %0 = stablehlo.reshape %arg0 : (tensor<2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %1 = stablehlo.dot_general %0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x5x3x1x8xf32>, tensor<2x7x3x8xf32>) -> tensor<2x3x5x1x7xf32>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3x5x1x7xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<2x3x5x1x7xf32>
    %4 = stablehlo.reduce(%3 init: %cst_1) applies stablehlo.maximum across dimensions = [4] : (tensor<2x3x5x1x7xf32>, tensor<f32>) -> tensor<2x3x5x1xf32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3x5x1xf32>
    %6 = stablehlo.maximum %5, %4 : tensor<2x3x5x1xf32>
    %7 = stablehlo.transpose %6, dims = [3, 0, 1, 2] : (tensor<2x3x5x1xf32>) -> tensor<1x2x3x5xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %9 = stablehlo.transpose %3, dims = [3, 0, 1, 2, 4] : (tensor<2x3x5x1x7xf32>) -> tensor<1x2x3x5x7xf32>
    %10 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x7xf32>
    %11 = stablehlo.subtract %9, %10 : tensor<1x2x3x5x7xf32>
    %12 = stablehlo.exponential %11 : tensor<1x2x3x5x7xf32>
    %13 = stablehlo.reduce(%12 init: %cst_0) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x5x7xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3] : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x7xf32>
    %16 = stablehlo.divide %12, %15 : tensor<1x2x3x5x7xf32>
    %17 = stablehlo.dot_general %arg2, %16, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<2x7x3x8xf32>, tensor<1x2x3x5x7xf32>) -> tensor<2x3x8x1x5xf32>
    %18 = stablehlo.transpose %17, dims = [3, 0, 4, 1, 2] : (tensor<2x3x8x1x5xf32>) -> tensor<1x2x5x3x8xf32>
    %19 = stablehlo.transpose %18, dims = [1, 2, 3, 0, 4] : (tensor<1x2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %20 = stablehlo.reshape %19 : (tensor<2x5x3x1x8xf32>) -> tensor<2x5x3x8xf32>
    %21 = stablehlo.slice %arg1 [0:2, 0:5, 0:3, 0:8] : (tensor<2x7x3x8xf32>) -> tensor<2x5x3x8xf32>
    %22 = stablehlo.slice %arg2 [0:2, 0:5, 0:3, 0:8] : (tensor<2x7x3x8xf32>) -> tensor<2x5x3x8xf32>
    %23 = stablehlo.reshape %arg0 : (tensor<2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %24 = stablehlo.dot_general %23, %21, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x5x3x1x8xf32>, tensor<2x5x3x8xf32>) -> tensor<2x3x5x1x5xf32>
    %25 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3x5x1x5xf32>
    %26 = stablehlo.multiply %24, %25 : tensor<2x3x5x1x5xf32>
    %27 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<2x3x5x5xi1>
    %28 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<5x5xi1>
    %29 = call @tril(%28) : (tensor<5x5xi1>) -> tensor<5x5xi1>
    %30 = stablehlo.broadcast_in_dim %29, dims = [2, 3] : (tensor<5x5xi1>) -> tensor<1x1x5x5xi1>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3] : (tensor<1x1x5x5xi1>) -> tensor<2x3x5x5xi1>
    %32 = stablehlo.and %27, %31 : tensor<2x3x5x5xi1>
    %33 = call @_where(%32, %26, %cst) : (tensor<2x3x5x5xi1>, tensor<2x3x5x1x5xf32>, tensor<f32>) -> tensor<1x2x3x5x5xf32>
    %34 = stablehlo.reduce(%33 init: %cst_1) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x3x5x5xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
    %35 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x2x3x5xf32>
    %36 = stablehlo.maximum %35, %34 : tensor<1x2x3x5xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2, 3] : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x5xf32>
    %39 = stablehlo.subtract %33, %38 : tensor<1x2x3x5x5xf32>
    %40 = stablehlo.exponential %39 : tensor<1x2x3x5x5xf32>
    %41 = stablehlo.reduce(%40 init: %cst_0) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x5x5xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1, 2, 3] : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %43 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x5xf32>
    %44 = stablehlo.divide %40, %43 : tensor<1x2x3x5x5xf32>
    %45 = stablehlo.dot_general %22, %44, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<2x5x3x8xf32>, tensor<1x2x3x5x5xf32>) -> tensor<2x3x8x1x5xf32>
    %46 = stablehlo.transpose %45, dims = [3, 0, 4, 1, 2] : (tensor<2x3x8x1x5xf32>) -> tensor<1x2x5x3x8xf32>
    %47 = stablehlo.transpose %46, dims = [1, 2, 3, 0, 4] : (tensor<1x2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %48 = stablehlo.reshape %47 : (tensor<2x5x3x1x8xf32>) -> tensor<2x5x3x8xf32>
    return %20, %48 : tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>
  }
  func.func private @tril(%arg0: tensor<5x5xi1>) -> tensor<5x5xi1> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %2 = stablehlo.add %0, %1 : tensor<5x5xi32>
    %3 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<5x5xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<5x5xi1>, tensor<5x5xi1>
    return %6 : tensor<5x5xi1>
  }
  func.func private @_where(%arg0: tensor<2x3x5x5xi1>, %arg1: tensor<2x3x5x1x5xf32>, %arg2: tensor<f32>) -> tensor<1x2x3x5x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x3x5x5xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x3x5x5xi1>) -> tensor<1x2x3x5x5xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
    %3 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<2x3x5x1x5xf32>) -> tensor<1x2x3x5x5xf32>
    %4 = stablehlo.select %1, %3, %2 : tensor<1x2x3x5x5xi1>, tensor<1x2x3x5x5xf32>
    return %4 : tensor<1x2x3x5x5xf32>
  }
}
