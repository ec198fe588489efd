"""Einsum as a chain of `dot`s: parse the equation, take diagonals, sum what nobody else needs, contract pairwise."""

import string
from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.problems import Complaints
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """An operand whose dimensions carry labels."""

    value: Instruction
    labels: Labels

    def size(self, label: str) -> int:
        return self.value.shape[self.labels.index(label)]


@onnx_op("Einsum", since=12)
def einsum(node: NodeView, b: Builder) -> Instruction:
    return einsum_of(node, b, node.string("equation"), node.inputs())


def einsum_of(node: Complaints, b: Builder, equation: str, operands: Sequence[Instruction]) -> Instruction:
    """numpy.einsum: the ellipsis broadcasts, and without `->` labels that occur once come out in order."""
    inputs, output = _parse(node, equation, [len(x.shape) for x in operands])
    terms = [_diagonal(node, b, Term(x, labels)) for x, labels in zip(operands, inputs, strict=True)]
    sizes = _sizes(node, terms)
    terms = [_without_unit_labels(b, term, sizes) for term in terms]
    missing = [label for label in output if label not in sizes]
    if missing or len(set(output)) != len(output):
        node.shape_error(f"the output {''.join(output)} must name labels of the inputs, each once")
    result = terms[0]
    for i, term in enumerate(terms[1:], start=1):
        needed = set(output).union(*(t.labels for t in terms[i + 1 :]))
        result = _contract(b, _summed(b, result, needed | set(term.labels)), term, needed, output)
    result = _summed(b, result, set(output))
    permutation = [result.labels.index(label) for label in output if label in result.labels]
    value = b.transpose(result.value, permutation)
    return b.reshape(value, [sizes[label] for label in output])


def _parse(node: Complaints, equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each input and of the output. The ellipsis becomes the labels 0, 1, ... from its right end."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        node.shape_error(f"the equation {equation!r} has {len(texts)} terms for {len(ranks)} inputs")
    for text in [*texts, right]:
        letters = text.replace("...", "", 1)
        if any(c not in string.ascii_letters for c in letters):
            node.shape_error(f"the equation {equation!r} has a term {text!r} that is not letters and one '...'")
    inputs, widest = [], 0
    for text, rank in zip(texts, ranks, strict=True):
        before, dots, after = text.partition("...")
        hidden = rank - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            node.shape_error(f"the term {text!r} does not fit rank {rank}")
        widest = max(widest, hidden)
        inputs.append((*before, *_ellipsis(hidden), *after))
    if arrow:
        before, dots, after = right.partition("...")
        return inputs, (*before, *(_ellipsis(widest) if dots else ()), *after)
    named = sorted(set("".join(texts)) - {"."})
    once = [c for c in named if sum(labels.count(c) for labels in inputs) == 1]
    return inputs, (*_ellipsis(widest), *once)


def _ellipsis(count: int) -> Labels:
    return tuple(str(i) for i in reversed(range(count)))


def _sizes(node: Complaints, terms: Sequence[Term]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term in terms:
        for label, size in zip(term.labels, term.value.shape, strict=True):
            if size != 1 and sizes.get(label, 1) not in (1, size):
                node.shape_error(f"the label {label} stands for {sizes[label]} and for {size}")
            sizes[label] = size if size != 1 else sizes.get(label, 1)
    return sizes


def _diagonal(node: Complaints, b: Builder, term: Term) -> Term:
    """Each label once: where one repeats, everything off the diagonal is zeroed and summed away."""
    value, labels = term.value, term.labels
    while len(set(labels)) != len(labels):
        second = next(i for i, label in enumerate(labels) if label in labels[:i])
        first = labels.index(labels[second])
        if value.shape[first] != value.shape[second]:
            node.shape_error(f"the label {labels[first]} stands for {value.shape[first]} and {value.shape[second]}")
        type = TensorType(S32, value.shape)
        on_diagonal = b.compare(b.iota(type, first), b.iota(type, second), "EQ")
        value = b.reduce_by("add", b.select(on_diagonal, value, b.full_like(value, 0)), [second])
        labels = labels[:second] + labels[second + 1 :]
    return Term(value, labels)


def _without_unit_labels(b: Builder, term: Term, sizes: dict[str, int]) -> Term:
    """Dimensions of size 1 go: they broadcast, or come back when the output is reshaped."""
    kept = [label for label in term.labels if term.size(label) != 1]
    return Term(b.reshape(term.value, [sizes[label] for label in kept]), tuple(kept))


def _summed(b: Builder, term: Term, needed: set[str]) -> Term:
    gone = [i for i, label in enumerate(term.labels) if label not in needed]
    if not gone:
        return term
    kept = tuple(label for label in term.labels if label in needed)
    return Term(b.reduce_by("add", term.value, gone), kept)


def _contract(b: Builder, left: Term, right: Term, needed: set[str], output: Labels) -> Term:
    """The product, summed over what both have and nobody needs any more."""
    right = _summed(b, right, needed | set(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    contracting = [label for label in shared if label not in needed]
    batch = [label for label in shared if label in needed]
    batch.sort(key=lambda label: output.index(label) if label in output else len(output))
    if not contracting:
        return _multiply(b, left, right)

    def product_labels(lhs: Term, rhs: Term) -> Labels:
        used = {*batch, *contracting}
        return (*batch, *(x for x in lhs.labels if x not in used), *(x for x in rhs.labels if x not in used))

    wished = tuple(label for label in output if label in product_labels(left, right))
    if product_labels(left, right) != wished == product_labels(right, left):
        left, right = right, left
    value = b.dot(
        left.value,
        right.value,
        [left.labels.index(label) for label in contracting],
        [right.labels.index(label) for label in contracting],
        [left.labels.index(label) for label in batch],
        [right.labels.index(label) for label in batch],
    )
    return Term(value, product_labels(left, right))


def _multiply(b: Builder, left: Term, right: Term) -> Term:
    labels = left.labels + tuple(label for label in right.labels if label not in left.labels)
    shape = [left.size(label) if label in left.labels else right.size(label) for label in labels]
    factors = []
    for term in (left, right):
        order = sorted(range(len(term.labels)), key=lambda i, t=term: labels.index(t.labels[i]))  # type: ignore[misc]
        places = [labels.index(term.labels[i]) for i in order]
        factors.append(b.broadcast(b.transpose(term.value, order), shape, places))
    return Term(b.multiply(*factors), labels)
