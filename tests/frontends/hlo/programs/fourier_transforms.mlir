module @jit_fourier_transforms attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x12xf32>, %arg1: tensor<4x8xf32>) -> (tensor<3x12xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x12xcomplex<f32>> {jax.result_info = "result[1]"}, tensor<3x7xcomplex<f32>> {jax.result_info = "result[2]"}, tensor<3x22xf32> {jax.result_info = "result[3]"}, tensor<4x8xcomplex<f32>> {jax.result_info = "result[4]"}, tensor<4x8xf32> {jax.result_info = "result[5]"}) {
    %0 = call @fft(%arg0) : (tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>>
    %1 = call @fft_0(%arg0) : (tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>>
    %2 = call @fft_1(%arg0) : (tensor<3x12xf32>) -> tensor<3x7xcomplex<f32>>
    %3 = call @fft_2(%arg0) : (tensor<3x12xf32>) -> tensor<3x22xf32>
    %4 = call @fft_3(%arg1) : (tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %5 = call @_roll_static(%arg1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<3x12xcomplex<f32>>, tensor<3x12xcomplex<f32>>, tensor<3x7xcomplex<f32>>, tensor<3x22xf32>, tensor<4x8xcomplex<f32>>, tensor<4x8xf32>
  }
  func.func private @fft(%arg0: tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>>
    %1 = stablehlo.fft %0, type = FFT, length = [12] : (tensor<3x12xcomplex<f32>>) -> tensor<3x12xcomplex<f32>>
    return %1 : tensor<3x12xcomplex<f32>>
  }
  func.func private @fft_0(%arg0: tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>>
    %1 = stablehlo.fft %0, type = IFFT, length = [12] : (tensor<3x12xcomplex<f32>>) -> tensor<3x12xcomplex<f32>>
    return %1 : tensor<3x12xcomplex<f32>>
  }
  func.func private @fft_1(%arg0: tensor<3x12xf32>) -> tensor<3x7xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [12] : (tensor<3x12xf32>) -> tensor<3x7xcomplex<f32>>
    return %0 : tensor<3x7xcomplex<f32>>
  }
  func.func private @fft_2(%arg0: tensor<3x12xf32>) -> tensor<3x22xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<3x12xf32>) -> tensor<3x12xcomplex<f32>>
    %1 = stablehlo.fft %0, type = IRFFT, length = [22] : (tensor<3x12xcomplex<f32>>) -> tensor<3x22xf32>
    return %1 : tensor<3x22xf32>
  }
  func.func private @fft_3(%arg0: tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>
    %1 = stablehlo.fft %0, type = FFT, length = [4, 8] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    return %1 : tensor<4x8xcomplex<f32>>
  }
  func.func private @_roll_static(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.slice %arg0 [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = stablehlo.slice %arg0 [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    %3 = stablehlo.slice %2 [0:4, 4:8] : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.slice %2 [0:4, 0:4] : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.concatenate %3, %4, dim = 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
    return %5 : tensor<4x8xf32>
  }
}
