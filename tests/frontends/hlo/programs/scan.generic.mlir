"builtin.module"() <{sym_name = "jit_scan"}> ({
  "func.func"() <{function_type = (tensor<6x3xf32>, tensor<3x3xf32>) -> (tensor<3xf32>, tensor<6x3xf32>, tensor<3xf32>, tensor<6x3xf32>), res_attrs = [{jax.result_info = "result[0][0]"}, {jax.result_info = "result[0][1]"}, {jax.result_info = "result[1][0]"}, {jax.result_info = "result[1][1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg8: tensor<6x3xf32>, %arg9: tensor<3x3xf32>):
    %12 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %13 = "stablehlo.constant"() <{value = dense<6> : tensor<i32>}> : () -> tensor<i32>
    %14 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %15 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %16 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %17 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x3xf32>
    %18:5 = "stablehlo.while"(%arg8, %arg9, %14, %16, %17) ({
    ^bb0(%arg25: tensor<6x3xf32>, %arg26: tensor<3x3xf32>, %arg27: tensor<i32>, %arg28: tensor<3xf32>, %arg29: tensor<6x3xf32>):
      %33 = "stablehlo.compare"(%arg27, %13) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%33) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg20: tensor<6x3xf32>, %arg21: tensor<3x3xf32>, %arg22: tensor<i32>, %arg23: tensor<3xf32>, %arg24: tensor<6x3xf32>):
      %29 = "func.call"(%arg20, %arg22) <{callee = @dynamic_index_in_dim}> : (tensor<6x3xf32>, tensor<i32>) -> tensor<3xf32>
      %30:2 = "func.call"(%arg21, %arg23, %29) <{callee = @closed_call}> : (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
      %31 = "func.call"(%arg24, %30#1, %arg22) <{callee = @dynamic_update_index_in_dim}> : (tensor<6x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<6x3xf32>
      %32 = "stablehlo.add"(%arg22, %12) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%arg20, %arg21, %32, %30#0, %31) : (tensor<6x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3xf32>, tensor<6x3xf32>) -> ()
    }) : (tensor<6x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3xf32>, tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3xf32>, tensor<6x3xf32>)
    %19 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %20 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x3xf32>
    %21:5 = "stablehlo.while"(%arg8, %arg9, %14, %19, %20) ({
    ^bb0(%arg15: tensor<6x3xf32>, %arg16: tensor<3x3xf32>, %arg17: tensor<i32>, %arg18: tensor<3xf32>, %arg19: tensor<6x3xf32>):
      %28 = "stablehlo.compare"(%arg17, %13) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%28) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg10: tensor<6x3xf32>, %arg11: tensor<3x3xf32>, %arg12: tensor<i32>, %arg13: tensor<3xf32>, %arg14: tensor<6x3xf32>):
      %22 = "stablehlo.subtract"(%13, %arg12) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %23 = "stablehlo.subtract"(%22, %12) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %24 = "func.call"(%arg10, %23) <{callee = @dynamic_index_in_dim}> : (tensor<6x3xf32>, tensor<i32>) -> tensor<3xf32>
      %25:2 = "func.call"(%arg11, %arg13, %24) <{callee = @closed_call}> : (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
      %26 = "func.call"(%arg14, %25#1, %23) <{callee = @dynamic_update_index_in_dim}> : (tensor<6x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<6x3xf32>
      %27 = "stablehlo.add"(%arg12, %12) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%arg10, %arg11, %27, %25#0, %26) : (tensor<6x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3xf32>, tensor<6x3xf32>) -> ()
    }) : (tensor<6x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3xf32>, tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3xf32>, tensor<6x3xf32>)
    "func.return"(%18#3, %18#4, %21#3, %21#4) : (tensor<3xf32>, tensor<6x3xf32>, tensor<3xf32>, tensor<6x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x3xf32>, tensor<i32>) -> tensor<3xf32>, sym_name = "dynamic_index_in_dim", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<6x3xf32>, %arg7: tensor<i32>):
    %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.dynamic_slice"(%arg6, %arg7, %9) <{slice_sizes = array<i64: 1, 3>}> : (tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %11 = "stablehlo.reshape"(%10) : (tensor<1x3xf32>) -> tensor<3xf32>
    "func.return"(%11) : (tensor<3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<3x3xf32>, %arg4: tensor<3xf32>, %arg5: tensor<3xf32>):
    %3 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.dot_general"(%arg4, %arg3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
    %5 = "stablehlo.add"(%4, %arg5) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %6 = "stablehlo.tanh"(%5) : (tensor<3xf32>) -> tensor<3xf32>
    %7 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %8 = "stablehlo.multiply"(%6, %7) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    "func.return"(%6, %8) : (tensor<3xf32>, tensor<3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<6x3xf32>, sym_name = "dynamic_update_index_in_dim", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<6x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>):
    %0 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %1 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<1x3xf32>
    %2 = "stablehlo.dynamic_update_slice"(%arg0, %1, %arg2, %0) : (tensor<6x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x3xf32>
    "func.return"(%2) : (tensor<6x3xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
