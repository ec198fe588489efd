"""From probabilities between each two classes to one distribution: libsvm's `multiclass_probability`.

The method of Wu, Lin and Weng (2004), their second: coordinate descent on p'Qp, for all rows at once,
each row standing still once it has converged.
"""

import itertools

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, PRED, S32

MOST_ITERATIONS = 100
TOLERANCE = 0.005
"""Divided by the number of classes, the largest error of a converged row."""


def pairwise_to_class_probabilities(b: Builder, pairwise: Instruction, classes: int) -> Instruction:
    """`pairwise` [rows, pairs], pairs (i, j) with i < j in order, to [rows, classes]."""
    rows = pairwise.shape[0]
    against: dict[tuple[int, int], Instruction] = {}
    for k, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        wins = b.reshape(b.slice(pairwise, [0, k], [rows, k + 1]), (rows,))
        against[i, j], against[j, i] = wins, b.subtract(b.full_like(wins, 1), wins)
    entries: list[list[Instruction]] = []
    for t in range(classes):
        row = [b.negate(b.multiply(against[j, t], against[t, j])) if j != t else None for j in range(classes)]
        squares = [b.multiply(against[j, t], against[j, t]) for j in range(classes) if j != t]
        diagonal = squares[0]
        for square in squares[1:]:
            diagonal = b.add(diagonal, square)
        entries.append([diagonal if entry is None else entry for entry in row])
    flat = [entry for row in entries for entry in row]
    start = [b.full((rows,), 1 / classes, F32)] * classes
    init = b.tuple(b.constant(0, S32), b.full((rows,), False, PRED), *start, *flat)

    body = Builder("couple_probabilities", b.source)
    state = body.parameter(init.type)
    parts = [body.get_tuple_element(state, k) for k in range(len(init.operands))]
    step, finished = parts[:2]
    p, q = parts[2 : 2 + classes], parts[2 + classes :]
    matrix = [q[t * classes : (t + 1) * classes] for t in range(classes)]
    finished, p = _descend(body, matrix, finished, p)
    root = body.tuple(body.add(step, body.constant(1, S32)), finished, *p, *q)

    condition = Builder("couple_more", b.source)
    state = condition.parameter(init.type)
    few = condition.compare(
        condition.get_tuple_element(state, 0), condition.constant(max(MOST_ITERATIONS, classes), S32), "LT"
    )
    all_finished = condition.reduce_by("and", condition.get_tuple_element(state, 1), [0])
    going_on = condition.and_(few, condition.not_(all_finished))
    done = b.while_(init, condition.build(going_on), body.build(root))
    columns = [b.reshape(b.get_tuple_element(done, 2 + t), (rows, 1)) for t in range(classes)]
    return b.concatenate(columns, 1)


def _descend(
    b: Builder, q: list[list[Instruction]], finished: Instruction, p: list[Instruction]
) -> tuple[Instruction, list[Instruction]]:
    """One round over all classes, of the rows that are not finished yet."""
    classes = len(p)

    def dot(left: list[Instruction], right: list[Instruction]) -> Instruction:
        total = b.multiply(left[0], right[0])
        for x, y in zip(left[1:], right[1:], strict=True):
            total = b.add(total, b.multiply(x, y))
        return total

    qp = [dot(q[t], p) for t in range(classes)]
    pqp = dot(p, qp)
    error = b.unary("abs", b.subtract(qp[0], pqp))
    for value in qp[1:]:
        error = b.maximum(error, b.unary("abs", b.subtract(value, pqp)))
    finished = b.or_(finished, b.compare(error, b.full_like(error, TOLERANCE / classes), "LT"))
    one, two = b.full_like(pqp, 1), b.full_like(pqp, 2)
    new = list(p)
    for t in range(classes):
        step = b.divide(b.subtract(pqp, qp[t]), q[t][t])
        scale = b.add(one, step)
        new[t] = b.add(new[t], step)
        growth = b.multiply(step, b.add(b.multiply(step, q[t][t]), b.multiply(two, qp[t])))
        pqp = b.divide(b.divide(b.add(pqp, growth), scale), scale)
        qp = [b.divide(b.add(qp[j], b.multiply(step, q[t][j])), scale) for j in range(classes)]
        new = [b.divide(value, scale) for value in new]
    return finished, [b.select(finished, before, after) for before, after in zip(p, new, strict=True)]
