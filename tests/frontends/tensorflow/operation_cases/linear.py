"""Products of matrices."""

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import case, f, gradient

case(
    "matmul",
    lambda x, y: [tf.matmul(x, y), tf.matmul(x, x, transpose_a=True), tf.matmul(y, y, transpose_b=True)],
    f(4, 5),
    f(5, 3),
)
case(
    "batch_matmul",
    lambda x, y: [tf.matmul(x, y), tf.matmul(x, tf.transpose(y, (0, 2, 1)), transpose_b=True)],
    f(2, 3, 4, 5),
    f(3, 5, 2),
)
gradient("gradient_matmul", tf.matmul, f(4, 5), f(5, 3))
gradient("gradient_batch_matmul", tf.matmul, f(2, 4, 5), f(2, 5, 3))
for _n, (_equation, _a, _b) in enumerate(
    [("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)), ("...ij,jk->...ik", (2, 3, 4), (4, 5))]
):
    gradient(f"einsum_{_n}", lambda x, y, e=_equation: tf.einsum(e, x, y), f(*_a), f(*_b))
gradient("bias_add", lambda x, y: tf.nn.bias_add(x, y), f(2, 3, 3, 4), f(4))
