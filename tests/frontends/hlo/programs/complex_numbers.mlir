module @jit_complex_numbers attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<5xf32>) -> (tensor<5xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<5xf32> {jax.result_info = "result[1]"}, tensor<5xcomplex<f32>> {jax.result_info = "result[2]"}, tensor<5xcomplex<f32>> {jax.result_info = "result[3]"}, tensor<5xf32> {jax.result_info = "result[4]"}, tensor<5xf32> {jax.result_info = "result[5]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<5xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<5xf32>
    %cst_1 = stablehlo.constant dense<0x7F800000> : tensor<5xf32>
    %0 = stablehlo.complex %arg0, %arg1 : tensor<5xcomplex<f32>>
    %1 = stablehlo.multiply %0, %0 : tensor<5xcomplex<f32>>
    %2 = stablehlo.abs %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %3 = stablehlo.real %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %4 = stablehlo.exponential %3 : tensor<5xf32>
    %5 = stablehlo.compare EQ, %4, %cst_1 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    %6 = stablehlo.multiply %3, %cst_0 : tensor<5xf32>
    %7 = stablehlo.exponential %6 : tensor<5xf32>
    %8 = stablehlo.imag %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %9 = stablehlo.cosine %8 : tensor<5xf32>
    %10 = stablehlo.multiply %7, %9 : tensor<5xf32>
    %11 = stablehlo.multiply %10, %7 : tensor<5xf32>
    %12 = stablehlo.multiply %4, %9 : tensor<5xf32>
    %13 = stablehlo.select %5, %11, %12 : tensor<5xi1>, tensor<5xf32>
    %14 = stablehlo.compare EQ, %8, %cst : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    %15 = stablehlo.sine %8 : tensor<5xf32>
    %16 = stablehlo.multiply %7, %15 : tensor<5xf32>
    %17 = stablehlo.multiply %16, %7 : tensor<5xf32>
    %18 = stablehlo.multiply %4, %15 : tensor<5xf32>
    %19 = stablehlo.select %5, %17, %18 : tensor<5xi1>, tensor<5xf32>
    %20 = stablehlo.select %14, %cst, %19 : tensor<5xi1>, tensor<5xf32>
    %21 = stablehlo.complex %13, %20 : tensor<5xcomplex<f32>>
    %22 = stablehlo.real %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %23 = stablehlo.imag %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %24 = stablehlo.negate %23 : tensor<5xf32>
    %25 = stablehlo.complex %22, %24 : tensor<5xcomplex<f32>>
    %26 = call @angle(%0) : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %27 = stablehlo.real %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %28 = stablehlo.imag %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %29 = stablehlo.divide %27, %28 : tensor<5xf32>
    return %1, %2, %21, %25, %26, %29 : tensor<5xcomplex<f32>>, tensor<5xf32>, tensor<5xcomplex<f32>>, tensor<5xcomplex<f32>>, tensor<5xf32>, tensor<5xf32>
  }
  func.func private @angle(%arg0: tensor<5xcomplex<f32>>) -> tensor<5xf32> {
    %0 = stablehlo.real %arg0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %1 = stablehlo.imag %arg0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %2 = stablehlo.atan2 %1, %0 : tensor<5xf32>
    return %2 : tensor<5xf32>
  }
}
