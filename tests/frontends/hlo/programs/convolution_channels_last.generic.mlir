"builtin.module"() <{sym_name = "jit_convolution_channels_last"}> ({
  "func.func"() <{function_type = (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x5x7x6xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x9x7x4xf32>, %arg1: tensor<3x3x4x6xf32>):
    %0 = "stablehlo.convolution"(%arg0, %arg1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<1> : tensor<2x2xi64>, window_strides = array<i64: 2, 1>}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x5x7x6xf32>
    "func.return"(%0) : (tensor<2x5x7x6xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
