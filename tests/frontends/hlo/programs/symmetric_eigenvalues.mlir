module @jit_symmetric_eigenvalues attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5x5xf32>) -> (tensor<5xf32> {jax.result_info = "result[0][0]"}, tensor<5x5xcomplex<f32>> {jax.result_info = "result[0][1]"}, tensor<5x5xcomplex<f32>> {jax.result_info = "result[0][2]"}, tensor<3x5xf32> {jax.result_info = "result[0][3]"}, tensor<3x5x5xf32> {jax.result_info = "result[0][4]"}, tensor<3x5x5xf32> {jax.result_info = "result[0][5]"}, tensor<2x5xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %cst_1 = stablehlo.constant dense<[2.000000e+00, -1.000000e+00, 2.000000e+00, -1.000000e+00, 0.000000e+00]> : tensor<5xf32>
    %0 = stablehlo.slice %arg0 [0:1, 0:5, 0:5] : (tensor<2x5x5xf32>) -> tensor<1x5x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %2 = stablehlo.slice %arg0 [0:1, 0:5, 0:5] : (tensor<2x5x5xf32>) -> tensor<1x5x5xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %5 = stablehlo.add %1, %4 : tensor<5x5xf32>
    %6 = stablehlo.slice %arg0 [0:1, 0:5, 0:5] : (tensor<2x5x5xf32>) -> tensor<1x5x5xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %8 = stablehlo.slice %arg0 [0:1, 0:5, 0:5] : (tensor<2x5x5xf32>) -> tensor<1x5x5xf32>
    %9 = stablehlo.reshape %8 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %10 = stablehlo.transpose %9, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %11 = stablehlo.subtract %7, %10 : tensor<5x5xf32>
    %12 = stablehlo.convert %11 : (tensor<5x5xf32>) -> tensor<5x5xcomplex<f32>>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<complex<f32>>) -> tensor<5x5xcomplex<f32>>
    %14 = stablehlo.multiply %13, %12 : tensor<5x5xcomplex<f32>>
    %15 = stablehlo.convert %5 : (tensor<5x5xf32>) -> tensor<5x5xcomplex<f32>>
    %16 = stablehlo.add %15, %14 : tensor<5x5xcomplex<f32>>
    %17 = stablehlo.slice %arg0 [1:2, 0:5, 0:5] : (tensor<2x5x5xf32>) -> tensor<1x5x5xf32>
    %18 = stablehlo.reshape %17 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %19 = stablehlo.slice %arg0 [1:2, 0:5, 0:5] : (tensor<2x5x5xf32>) -> tensor<1x5x5xf32>
    %20 = stablehlo.reshape %19 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %21 = stablehlo.transpose %20, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %22 = stablehlo.dot_general %18, %21, contracting_dims = [1] x [0] : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
    %23 = call @_diag(%cst_1) : (tensor<5xf32>) -> tensor<5x5xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x5xf32>
    %25 = stablehlo.convert %24 : tensor<5x5xf32>
    %26 = stablehlo.broadcast_in_dim %22, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
    %27 = stablehlo.broadcast_in_dim %23, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
    %28 = stablehlo.broadcast_in_dim %25, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
    %29 = stablehlo.concatenate %26, %27, %28, dim = 0 : (tensor<1x5x5xf32>, tensor<1x5x5xf32>, tensor<1x5x5xf32>) -> tensor<3x5x5xf32>
    %30:2 = call @eigh(%16) : (tensor<5x5xcomplex<f32>>) -> (tensor<5xf32>, tensor<5x5xcomplex<f32>>)
    %31 = stablehlo.transpose %30#1, dims = [1, 0] : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %32 = stablehlo.real %31 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %33 = stablehlo.imag %31 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %34 = stablehlo.negate %33 : tensor<5x5xf32>
    %35 = stablehlo.complex %32, %34 : tensor<5x5xcomplex<f32>>
    %36 = stablehlo.broadcast_in_dim %30#0, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %37 = stablehlo.convert %36 : (tensor<1x5xf32>) -> tensor<1x5xcomplex<f32>>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1] : (tensor<1x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %39 = stablehlo.multiply %30#1, %38 : tensor<5x5xcomplex<f32>>
    %40 = stablehlo.dot_general %39, %35, contracting_dims = [1] x [0] : (tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %41 = stablehlo.dot_general %35, %30#1, contracting_dims = [1] x [0] : (tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %42:2 = call @eigh_0(%29) : (tensor<3x5x5xf32>) -> (tensor<3x5xf32>, tensor<3x5x5xf32>)
    %43 = stablehlo.transpose %42#1, dims = [0, 2, 1] : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
    %44 = stablehlo.broadcast_in_dim %42#0, dims = [0, 2] : (tensor<3x5xf32>) -> tensor<3x1x5xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2] : (tensor<3x1x5xf32>) -> tensor<3x5x5xf32>
    %46 = stablehlo.multiply %42#1, %45 : tensor<3x5x5xf32>
    %47 = stablehlo.dot_general %46, %43, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
    %48 = stablehlo.dot_general %43, %42#1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
    %49 = call @eigvalsh(%arg0) : (tensor<2x5x5xf32>) -> tensor<2x5xf32>
    return %30#0, %40, %41, %42#0, %47, %48, %49 : tensor<5xf32>, tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>, tensor<3x5xf32>, tensor<3x5x5xf32>, tensor<3x5x5xf32>, tensor<2x5xf32>
  }
  func.func private @_diag(%arg0: tensor<5xf32>) -> tensor<5x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.pad %arg0, %cst, low = [0], high = [0], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %2 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %3 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %4 = stablehlo.add %1, %3 : tensor<5x5xi32>
    %5 = stablehlo.compare EQ, %4, %2, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %6 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %7 = call @_where(%5, %6, %cst) : (tensor<5x5xi1>, tensor<5x1xf32>, tensor<f32>) -> tensor<5x5xf32>
    return %7 : tensor<5x5xf32>
  }
  func.func private @_where(%arg0: tensor<5x5xi1>, %arg1: tensor<5x1xf32>, %arg2: tensor<f32>) -> tensor<5x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x5xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<5x5xf32>
    %2 = stablehlo.select %arg0, %0, %1 : tensor<5x5xi1>, tensor<5x5xf32>
    return %2 : tensor<5x5xf32>
  }
  func.func private @eigh(%arg0: tensor<5x5xcomplex<f32>>) -> (tensor<5xf32>, tensor<5x5xcomplex<f32>>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_1 = stablehlo.constant dense<(2.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %1 = stablehlo.real %0 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %2 = stablehlo.imag %0 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %3 = stablehlo.negate %2 : tensor<5x5xf32>
    %4 = stablehlo.complex %1, %3 : tensor<5x5xcomplex<f32>>
    %5 = stablehlo.add %arg0, %4 : tensor<5x5xcomplex<f32>>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<complex<f32>>) -> tensor<5x5xcomplex<f32>>
    %7 = stablehlo.divide %5, %6 : tensor<5x5xcomplex<f32>>
    %8:3 = stablehlo.custom_call @lapack_cheevd_ffi(%7) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xcomplex<f32>>) -> (tensor<5x5xcomplex<f32>>, tensor<5xf32>, tensor<i32>)
    %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %10 = stablehlo.compare EQ, %8#2, %9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<complex<f32>>) -> tensor<5x5xcomplex<f32>>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %14 = stablehlo.select %13, %8#0, %12 : tensor<5x5xi1>, tensor<5x5xcomplex<f32>>
    %15 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0] : (tensor<1xi1>) -> tensor<5xi1>
    %18 = stablehlo.select %17, %8#1, %16 : tensor<5xi1>, tensor<5xf32>
    return %18, %14 : tensor<5xf32>, tensor<5x5xcomplex<f32>>
  }
  func.func private @eigh_0(%arg0: tensor<3x5x5xf32>) -> (tensor<3x5xf32>, tensor<3x5x5xf32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<3x5x5xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x5x5xf32>
    %3 = stablehlo.divide %1, %2 : tensor<3x5x5xf32>
    %4:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%3) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i]) {i=3, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<3x5x5xf32>) -> (tensor<3x5x5xf32>, tensor<3x5xf32>, tensor<3xi32>)
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %6 = stablehlo.compare EQ, %4#2, %5, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5x5xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x5xi1>
    %10 = stablehlo.select %9, %4#0, %8 : tensor<3x5x5xi1>, tensor<3x5x5xf32>
    %11 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %14 = stablehlo.select %13, %4#1, %12 : tensor<3x5xi1>, tensor<3x5xf32>
    return %14, %10 : tensor<3x5xf32>, tensor<3x5x5xf32>
  }
  func.func private @eigvalsh(%arg0: tensor<2x5x5xf32>) -> tensor<2x5xf32> {
    %0 = call @eigh_1(%arg0) : (tensor<2x5x5xf32>) -> tensor<2x5xf32>
    return %0 : tensor<2x5xf32>
  }
  func.func private @eigh_1(%arg0: tensor<2x5x5xf32>) -> tensor<2x5xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<2x5x5xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x5x5xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x5x5xf32>
    %4:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%3) {mhlo.backend_config = {mode = 86 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i]) {i=2, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<2x5x5xf32>) -> (tensor<2x5x5xf32>, tensor<2x5xf32>, tensor<2xi32>)
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %6 = stablehlo.compare EQ, %4#2, %5, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xi1>) -> tensor<2x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x5xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x1xi1>) -> tensor<2x5xi1>
    %10 = stablehlo.select %9, %4#1, %8 : tensor<2x5xi1>, tensor<2x5xf32>
    return %10 : tensor<2x5xf32>
  }
}
