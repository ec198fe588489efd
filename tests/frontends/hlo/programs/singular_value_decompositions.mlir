module @jit_singular_value_decompositions attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5x3xf32>, %arg1: tensor<2x4xf32>) -> (tensor<3x3xf32> {jax.result_info = "result[0][0]"}, tensor<3x5x3xf32> {jax.result_info = "result[0][1]"}, tensor<3x5x5xf32> {jax.result_info = "result[0][2]"}, tensor<3x3x3xf32> {jax.result_info = "result[0][3]"}, tensor<2xf32> {jax.result_info = "result[0][4]"}, tensor<2x4xcomplex<f32>> {jax.result_info = "result[0][5]"}, tensor<2x2xcomplex<f32>> {jax.result_info = "result[0][6]"}, tensor<2x2xcomplex<f32>> {jax.result_info = "result[0][7]"}, tensor<2x3xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %0 = stablehlo.slice %arg0 [0:1, 0:5, 0:3] : (tensor<2x5x3xf32>) -> tensor<1x5x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5x3xf32>) -> tensor<5x3xf32>
    %2 = stablehlo.slice %arg0 [1:2, 0:5, 0:3] : (tensor<2x5x3xf32>) -> tensor<1x5x3xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x5x3xf32>) -> tensor<5x3xf32>
    %4 = stablehlo.slice %arg0 [0:1, 0:5, 0:1] : (tensor<2x5x3xf32>) -> tensor<1x5x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x5x1xf32>) -> tensor<5xf32>
    %6 = stablehlo.slice %arg1 [0:1, 0:3] : (tensor<2x4xf32>) -> tensor<1x3xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x3xf32>) -> tensor<3xf32>
    %8 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %10 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x3xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<5x3xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<5x3xf32>
    %13 = stablehlo.broadcast_in_dim %1, dims = [1, 2] : (tensor<5x3xf32>) -> tensor<1x5x3xf32>
    %14 = stablehlo.broadcast_in_dim %3, dims = [1, 2] : (tensor<5x3xf32>) -> tensor<1x5x3xf32>
    %15 = stablehlo.broadcast_in_dim %12, dims = [1, 2] : (tensor<5x3xf32>) -> tensor<1x5x3xf32>
    %16 = stablehlo.concatenate %13, %14, %15, dim = 0 : (tensor<1x5x3xf32>, tensor<1x5x3xf32>, tensor<1x5x3xf32>) -> tensor<3x5x3xf32>
    %17 = stablehlo.reverse %arg1, dims = [0] : tensor<2x4xf32>
    %18 = stablehlo.convert %17 : (tensor<2x4xf32>) -> tensor<2x4xcomplex<f32>>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>>
    %20 = stablehlo.multiply %19, %18 : tensor<2x4xcomplex<f32>>
    %21 = stablehlo.convert %arg1 : (tensor<2x4xf32>) -> tensor<2x4xcomplex<f32>>
    %22 = stablehlo.add %21, %20 : tensor<2x4xcomplex<f32>>
    %23:3 = call @svd(%16) : (tensor<3x5x3xf32>) -> (tensor<3x5x5xf32>, tensor<3x3xf32>, tensor<3x3x3xf32>)
    %24 = stablehlo.slice %23#0 [0:3, 0:5, 0:3] : (tensor<3x5x5xf32>) -> tensor<3x5x3xf32>
    %25 = stablehlo.broadcast_in_dim %23#1, dims = [0, 2] : (tensor<3x3xf32>) -> tensor<3x1x3xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<3x1x3xf32>) -> tensor<3x5x3xf32>
    %27 = stablehlo.multiply %24, %26 : tensor<3x5x3xf32>
    %28 = stablehlo.dot_general %27, %23#2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x5x3xf32>, tensor<3x3x3xf32>) -> tensor<3x5x3xf32>
    %29 = stablehlo.transpose %23#0, dims = [0, 2, 1] : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
    %30 = stablehlo.dot_general %29, %23#0, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
    %31 = stablehlo.transpose %23#2, dims = [0, 2, 1] : (tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
    %32 = stablehlo.dot_general %23#2, %31, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x3x3xf32>, tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
    %33:3 = call @svd_0(%22) : (tensor<2x4xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2xf32>, tensor<2x4xcomplex<f32>>)
    %34 = stablehlo.broadcast_in_dim %33#1, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %35 = stablehlo.convert %34 : (tensor<1x2xf32>) -> tensor<1x2xcomplex<f32>>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1] : (tensor<1x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
    %37 = stablehlo.multiply %33#0, %36 : tensor<2x2xcomplex<f32>>
    %38 = stablehlo.dot_general %37, %33#2, contracting_dims = [1] x [0] : (tensor<2x2xcomplex<f32>>, tensor<2x4xcomplex<f32>>) -> tensor<2x4xcomplex<f32>>
    %39 = stablehlo.transpose %33#0, dims = [1, 0] : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
    %40 = stablehlo.real %39 : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>
    %41 = stablehlo.imag %39 : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>
    %42 = stablehlo.negate %41 : tensor<2x2xf32>
    %43 = stablehlo.complex %40, %42 : tensor<2x2xcomplex<f32>>
    %44 = stablehlo.dot_general %43, %33#0, contracting_dims = [1] x [0] : (tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
    %45 = stablehlo.transpose %33#2, dims = [1, 0] : (tensor<2x4xcomplex<f32>>) -> tensor<4x2xcomplex<f32>>
    %46 = stablehlo.real %45 : (tensor<4x2xcomplex<f32>>) -> tensor<4x2xf32>
    %47 = stablehlo.imag %45 : (tensor<4x2xcomplex<f32>>) -> tensor<4x2xf32>
    %48 = stablehlo.negate %47 : tensor<4x2xf32>
    %49 = stablehlo.complex %46, %48 : tensor<4x2xcomplex<f32>>
    %50 = stablehlo.dot_general %33#2, %49, contracting_dims = [1] x [0] : (tensor<2x4xcomplex<f32>>, tensor<4x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
    %51 = call @svd_1(%arg0) : (tensor<2x5x3xf32>) -> tensor<2x3xf32>
    return %23#1, %28, %30, %32, %33#1, %38, %44, %50, %51 : tensor<3x3xf32>, tensor<3x5x3xf32>, tensor<3x5x5xf32>, tensor<3x3x3xf32>, tensor<2xf32>, tensor<2x4xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x3xf32>
  }
  func.func private @svd(%arg0: tensor<3x5x3xf32>) -> (tensor<3x5x5xf32>, tensor<3x3xf32>, tensor<3x3x3xf32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%arg0) {mhlo.backend_config = {mode = 65 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o, p], [i, q, r], [i]) {i=3, j=5, k=3, l=5, m=3, n=3, o=5, p=5, q=3, r=3}, custom>} : (tensor<3x5x3xf32>) -> (tensor<3x5x3xf32>, tensor<3x3xf32>, tensor<3x5x5xf32>, tensor<3x3x3xf32>, tensor<3xi32>)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x3xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<3x3xi1>, tensor<3x3xf32>
    %7 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5x5xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x5xi1>
    %10 = stablehlo.select %9, %0#2, %8 : tensor<3x5x5xi1>, tensor<3x5x5xf32>
    %11 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x3xf32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x3x3xi1>
    %14 = stablehlo.select %13, %0#3, %12 : tensor<3x3x3xi1>, tensor<3x3x3xf32>
    return %10, %6, %14 : tensor<3x5x5xf32>, tensor<3x3xf32>, tensor<3x3x3xf32>
  }
  func.func private @svd_0(%arg0: tensor<2x4xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2xf32>, tensor<2x4xcomplex<f32>>) {
    %cst = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:5 = stablehlo.custom_call @lapack_cgesdd_ffi(%arg0) {mhlo.backend_config = {mode = 83 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], [n, o], [p, q], []) {i=2, j=4, k=2, l=4, m=2, n=2, o=2, p=2, q=4}, custom>} : (tensor<2x4xcomplex<f32>>) -> (tensor<2x4xcomplex<f32>>, tensor<2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x4xcomplex<f32>>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<1xi1>) -> tensor<2xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<2xi1>, tensor<2xf32>
    %7 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<2x2xcomplex<f32>>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<2x2xi1>
    %10 = stablehlo.select %9, %0#2, %8 : tensor<2x2xi1>, tensor<2x2xcomplex<f32>>
    %11 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<2x4xi1>
    %14 = stablehlo.select %13, %0#3, %12 : tensor<2x4xi1>, tensor<2x4xcomplex<f32>>
    return %10, %6, %14 : tensor<2x2xcomplex<f32>>, tensor<2xf32>, tensor<2x4xcomplex<f32>>
  }
  func.func private @svd_1(%arg0: tensor<2x5x3xf32>) -> tensor<2x3xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%arg0) {mhlo.backend_config = {mode = 78 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o, p], [i, q, r], [i]) {i=2, j=5, k=3, l=5, m=3, n=3, o=5, p=5, q=3, r=3}, custom>} : (tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x3xf32>, tensor<2x5x5xf32>, tensor<2x3x3xf32>, tensor<2xi32>)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xi1>) -> tensor<2x1xi1>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2x1xi1>) -> tensor<2x3xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<2x3xi1>, tensor<2x3xf32>
    return %6 : tensor<2x3xf32>
  }
}
