"""What a name can be bound to while values may have failed to import, and which operators pass failure on as data."""

from typing import TypeAlias

from onnxla.frontends.onnx.values import Value
from onnxla.frontends.poison import Poison

Binding: TypeAlias = Value | Poison | None
"""What a name is bound to; None is an input that a function's caller left out."""

COMPUTING = frozenset(
    "Abs Add And AveragePool BatchNormalization Cast Ceil Clip Concat Conv ConvTranspose Cos Div Elu Equal Erf Exp "
    "Flatten Floor Gather Gelu Gemm Greater GreaterOrEqual HardSigmoid HardSwish Identity LayerNormalization "
    "LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max MaxPool Min Mul Neg Not Or Pow ReduceL2 ReduceMax "
    "ReduceMean ReduceMin ReduceSum Relu Reshape Round Sigmoid Sign Sin Slice Softmax Softplus Split Sqrt Squeeze Sub "
    "Sum Tanh TopK Transpose Unsqueeze Where Xor".split()
)
"""Operators of the standard that compute every output from the elements of every input. Not among them: those that look
at types (Shape, CastLike) or choose (If, Loop)."""
