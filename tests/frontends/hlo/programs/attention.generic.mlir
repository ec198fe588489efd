"builtin.module"() <{sym_name = "jit_attention"}> ({
  "func.func"() <{function_type = (tensor<2x5x3x8xf32>, tensor<2x7x3x8xf32>, tensor<2x7x3x8xf32>) -> (tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg4: tensor<2x5x3x8xf32>, %arg5: tensor<2x7x3x8xf32>, %arg6: tensor<2x7x3x8xf32>):
    %14 = "stablehlo.constant"() <{value = dense<-2.38197633E+38> : tensor<f32>}> : () -> tensor<f32>
    %15 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %16 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %18 = "stablehlo.constant"() <{value = dense<0.353553385> : tensor<f32>}> : () -> tensor<f32>
    %19 = "stablehlo.reshape"(%arg4) : (tensor<2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %20 = "stablehlo.dot_general"(%19, %arg5) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [3]>}> : (tensor<2x5x3x1x8xf32>, tensor<2x7x3x8xf32>) -> tensor<2x3x5x1x7xf32>
    %21 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3x5x1x7xf32>
    %22 = "stablehlo.multiply"(%20, %21) : (tensor<2x3x5x1x7xf32>, tensor<2x3x5x1x7xf32>) -> tensor<2x3x5x1x7xf32>
    %23 = "stablehlo.reduce"(%22, %17) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      %71 = "stablehlo.maximum"(%arg13, %arg14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%71) : (tensor<f32>) -> ()
    }) : (tensor<2x3x5x1x7xf32>, tensor<f32>) -> tensor<2x3x5x1xf32>
    %24 = "stablehlo.broadcast_in_dim"(%17) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3x5x1xf32>
    %25 = "stablehlo.maximum"(%24, %23) : (tensor<2x3x5x1xf32>, tensor<2x3x5x1xf32>) -> tensor<2x3x5x1xf32>
    %26 = "stablehlo.transpose"(%25) <{permutation = array<i64: 3, 0, 1, 2>}> : (tensor<2x3x5x1xf32>) -> tensor<1x2x3x5xf32>
    %27 = "stablehlo.broadcast_in_dim"(%26) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %28 = "stablehlo.transpose"(%22) <{permutation = array<i64: 3, 0, 1, 2, 4>}> : (tensor<2x3x5x1x7xf32>) -> tensor<1x2x3x5x7xf32>
    %29 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x7xf32>
    %30 = "stablehlo.subtract"(%28, %29) : (tensor<1x2x3x5x7xf32>, tensor<1x2x3x5x7xf32>) -> tensor<1x2x3x5x7xf32>
    %31 = "stablehlo.exponential"(%30) : (tensor<1x2x3x5x7xf32>) -> tensor<1x2x3x5x7xf32>
    %32 = "stablehlo.reduce"(%31, %16) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg11: tensor<f32>, %arg12: tensor<f32>):
      %70 = "stablehlo.add"(%arg11, %arg12) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%70) : (tensor<f32>) -> ()
    }) : (tensor<1x2x3x5x7xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
    %33 = "stablehlo.broadcast_in_dim"(%32) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x7xf32>
    %35 = "stablehlo.divide"(%31, %34) : (tensor<1x2x3x5x7xf32>, tensor<1x2x3x5x7xf32>) -> tensor<1x2x3x5x7xf32>
    %36 = "stablehlo.dot_general"(%arg6, %35) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>}> : (tensor<2x7x3x8xf32>, tensor<1x2x3x5x7xf32>) -> tensor<2x3x8x1x5xf32>
    %37 = "stablehlo.transpose"(%36) <{permutation = array<i64: 3, 0, 4, 1, 2>}> : (tensor<2x3x8x1x5xf32>) -> tensor<1x2x5x3x8xf32>
    %38 = "stablehlo.transpose"(%37) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %39 = "stablehlo.reshape"(%38) : (tensor<2x5x3x1x8xf32>) -> tensor<2x5x3x8xf32>
    %40 = "stablehlo.slice"(%arg5) <{limit_indices = array<i64: 2, 5, 3, 8>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x3x8xf32>) -> tensor<2x5x3x8xf32>
    %41 = "stablehlo.slice"(%arg6) <{limit_indices = array<i64: 2, 5, 3, 8>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x3x8xf32>) -> tensor<2x5x3x8xf32>
    %42 = "stablehlo.reshape"(%arg4) : (tensor<2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %43 = "stablehlo.dot_general"(%42, %40) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [3]>}> : (tensor<2x5x3x1x8xf32>, tensor<2x5x3x8xf32>) -> tensor<2x3x5x1x5xf32>
    %44 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3x5x1x5xf32>
    %45 = "stablehlo.multiply"(%43, %44) : (tensor<2x3x5x1x5xf32>, tensor<2x3x5x1x5xf32>) -> tensor<2x3x5x1x5xf32>
    %46 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<2x3x5x5xi1>
    %47 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<5x5xi1>
    %48 = "func.call"(%47) <{callee = @tril}> : (tensor<5x5xi1>) -> tensor<5x5xi1>
    %49 = "stablehlo.broadcast_in_dim"(%48) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<5x5xi1>) -> tensor<1x1x5x5xi1>
    %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x5x5xi1>) -> tensor<2x3x5x5xi1>
    %51 = "stablehlo.and"(%46, %50) : (tensor<2x3x5x5xi1>, tensor<2x3x5x5xi1>) -> tensor<2x3x5x5xi1>
    %52 = "func.call"(%51, %45, %14) <{callee = @_where}> : (tensor<2x3x5x5xi1>, tensor<2x3x5x1x5xf32>, tensor<f32>) -> tensor<1x2x3x5x5xf32>
    %53 = "stablehlo.reduce"(%52, %17) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg9: tensor<f32>, %arg10: tensor<f32>):
      %69 = "stablehlo.maximum"(%arg9, %arg10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%69) : (tensor<f32>) -> ()
    }) : (tensor<1x2x3x5x5xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
    %54 = "stablehlo.broadcast_in_dim"(%17) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x2x3x5xf32>
    %55 = "stablehlo.maximum"(%54, %53) : (tensor<1x2x3x5xf32>, tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
    %56 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %57 = "stablehlo.broadcast_in_dim"(%56) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x5xf32>
    %58 = "stablehlo.subtract"(%52, %57) : (tensor<1x2x3x5x5xf32>, tensor<1x2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
    %59 = "stablehlo.exponential"(%58) : (tensor<1x2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
    %60 = "stablehlo.reduce"(%59, %16) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %68 = "stablehlo.add"(%arg7, %arg8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%68) : (tensor<f32>) -> ()
    }) : (tensor<1x2x3x5x5xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
    %61 = "stablehlo.broadcast_in_dim"(%60) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x1xf32>
    %62 = "stablehlo.broadcast_in_dim"(%61) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x3x5x1xf32>) -> tensor<1x2x3x5x5xf32>
    %63 = "stablehlo.divide"(%59, %62) : (tensor<1x2x3x5x5xf32>, tensor<1x2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
    %64 = "stablehlo.dot_general"(%41, %63) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>}> : (tensor<2x5x3x8xf32>, tensor<1x2x3x5x5xf32>) -> tensor<2x3x8x1x5xf32>
    %65 = "stablehlo.transpose"(%64) <{permutation = array<i64: 3, 0, 4, 1, 2>}> : (tensor<2x3x8x1x5xf32>) -> tensor<1x2x5x3x8xf32>
    %66 = "stablehlo.transpose"(%65) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
    %67 = "stablehlo.reshape"(%66) : (tensor<2x5x3x1x8xf32>) -> tensor<2x5x3x8xf32>
    "func.return"(%39, %67) : (tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x5xi1>) -> tensor<5x5xi1>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<5x5xi1>):
    %5 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %6 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %7 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x5xi32>
    %8 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<5x5xi32>
    %9 = "stablehlo.add"(%7, %8) : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi32>
    %10 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x5xi32>
    %11 = "stablehlo.compare"(%9, %10) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %12 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<5x5xi1>
    %13 = "stablehlo.select"(%11, %arg3, %12) : (tensor<5x5xi1>, tensor<5x5xi1>, tensor<5x5xi1>) -> tensor<5x5xi1>
    "func.return"(%13) : (tensor<5x5xi1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3x5x5xi1>, tensor<2x3x5x1x5xf32>, tensor<f32>) -> tensor<1x2x3x5x5xf32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<2x3x5x5xi1>, %arg1: tensor<2x3x5x1x5xf32>, %arg2: tensor<f32>):
    %0 = "stablehlo.broadcast_in_dim"(%arg2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3x5x5xf32>
    %1 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> : (tensor<2x3x5x5xi1>) -> tensor<1x2x3x5x5xi1>
    %2 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> : (tensor<2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
    %3 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 3, 0, 1, 2, 4>}> : (tensor<2x3x5x1x5xf32>) -> tensor<1x2x3x5x5xf32>
    %4 = "stablehlo.select"(%1, %3, %2) : (tensor<1x2x3x5x5xi1>, tensor<1x2x3x5x5xf32>, tensor<1x2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
    "func.return"(%4) : (tensor<1x2x3x5x5xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
