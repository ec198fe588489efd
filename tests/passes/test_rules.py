"""Every rule fires somewhere in the text tests, and what it leaves computes the same, to the sign of zero."""

import re
from pathlib import Path

import numpy as np
import pytest

from onnxla.config import CompileOptions
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import F32, Array, TensorType, TupleType, Type, Value
from onnxla.passes.constant_folding import FoldConstants
from onnxla.passes.pattern import once, operation, splat, variables
from onnxla.passes.rewrite import NoMatch, Replacement, RewritePass, RuleTable
from onnxla.passes.simplification import TABLES, Simplify

FOLDER = Path(__file__).parent
FILES = sorted(p.name for p in FOLDER.glob("*.hlo"))
EXACT = ("arithmetic.hlo", "shape.hlo", "convert.hlo", "selection.hlo", "indexing.hlo", "control_flow.hlo")
"""Files whose programs keep every bit, NaN aside; in others sums may be taken in another order."""
SPECIAL = (np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0, -1.5, 2.5, 0.1, 7.0, -3.0, 1e-3)


def programs(file: str) -> list[tuple[str, bool]]:
    """The programs of a text test, each with whether it is about fast_math."""
    text = (FOLDER / file).read_text()
    return [(part, "--fast-math" in part) for part in re.split(r"^// -----[^\n]*\n", text, flags=re.MULTILINE)]


def value_of(kind: Type, numbers: np.random.Generator, specials: bool) -> Value:
    if isinstance(kind, TupleType):
        return tuple(value_of(e, numbers, specials) for e in kind.elements)
    if kind.element.is_float:
        drawn = numbers.choice(SPECIAL, kind.shape) if specials else numbers.standard_normal(kind.shape)
        return np.asarray(drawn).astype(kind.element.dtype)
    return np.asarray(numbers.integers(0, 3, kind.shape)).astype(kind.element.dtype)


def leaves(value: Value) -> list[Array]:
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


@pytest.mark.parametrize("file", FILES)
def test_programs_compute_the_same_after_simplification(file: str) -> None:
    for text, fast_math in programs(file):
        if fast_math:
            continue
        exact = file in EXACT and "power(" not in text
        signed = not re.search(r"maximum\(|minimum\(|clamp\(", text)  # either zero is the greater of both
        module, simplified = parse_module(text), parse_module(text)
        Simplify(CompileOptions()).run(simplified)
        for seed in range(6):
            numbers = np.random.default_rng(seed)
            arguments = [value_of(p.type, numbers, file in EXACT) for p in module.entry.parameters]
            with np.errstate(all="ignore"):
                before, after = (leaves(m.entry.evaluate(*arguments)) for m in (module, simplified))
            for x, y in zip(before, after, strict=True):
                assert x.dtype == y.dtype and x.shape == y.shape, text
                if exact:
                    np.testing.assert_array_equal(x, y, err_msg=text)
                    if x.dtype.kind == "f" and signed:
                        known = ~np.isnan(x)
                        np.testing.assert_array_equal(np.signbit(x)[known], np.signbit(y)[known], err_msg=text)
                else:
                    np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=1e-5, atol=1e-6)


def test_every_rule_fires_in_a_text_test() -> None:
    fired: set[str] = set()
    for file in FILES:
        for text, fast_math in programs(file):
            options = CompileOptions(fast_math=fast_math)
            module = parse_module(text)
            for one in (Simplify(options), FoldConstants(options), Simplify(options)):
                one.run(module)
                fired |= one.stats.keys()
    assert {r.name for table in TABLES for r in table.rules} <= fired


def test_rules_have_reasons_and_names_of_their_own() -> None:
    rules = [r for table in TABLES for r in table.rules]
    assert all(r.replace.__doc__ for r in rules)
    assert len({r.name for r in rules}) == len(rules)


# The driver


def doubling_table() -> RuleTable:
    table = RuleTable()
    (x,) = variables("x")
    add = operation("add", 2)

    @table.rule(add(x, once(add(x, splat(1.0)))))
    def fire(b: Builder, x: Instruction) -> Replacement:
        """x + (x + 1), for the test."""
        return b.negate(x) if x.shape else NoMatch("a scalar")

    return table


class Doubling(RewritePass):
    name = "doubling"


def program(shape: tuple[int, ...]) -> Module:
    b = Builder()
    v = b.parameter(TensorType(F32, shape))
    return Module("m", b.build(b.add(b.add(v, b.full_like(v, 1.0)), v)))


def test_a_pattern_matches_in_either_order_of_a_commutative_operation() -> None:
    module = program((3,))
    one = Doubling([doubling_table()])
    assert one.run(module)
    assert one.stats == {"fire": 1}
    assert module.entry.root.op.opcode == "negate"


def test_a_refusal_is_counted_with_its_reason() -> None:
    module = program(())
    one = Doubling([doubling_table()])
    assert not one.run(module)
    assert one.refusals == {"fire": {"a scalar": 1}}
