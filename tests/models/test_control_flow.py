"""If, Loop and Scan inside whole models, run by native code."""

import numpy as np
import pytest

from tests.models.witnesses import check, model, normal


@pytest.mark.parametrize("choice", [True, False])
def test_branch_is_chosen_at_run_time(choice: bool) -> None:
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        choose (float[4] x, bool c) => (float[4] y) {
            n = Neg(x)
            b = If(c)<
                then_branch = then_graph () => (float[4] t) { e = Exp(n) t = Add(e, x) },
                else_branch = else_graph () => (float[4] f) { f = Mul(n, n) }
            >
            y = Add(b, n)
        }"""
    )
    check(network, {"x": normal(4), "c": np.array(choice)})


@pytest.mark.parametrize("most", [0, 1, 9])
def test_loop_ends_by_data(most: int) -> None:
    """Doubles until the sum passes a bound, or as often as an input says."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        double (float[3] x, int64 most, float bound) => (float[3] y, int64 rounds) {
            go = Constant<value = bool {1}>()
            zero = Constant<value = int64 {0}>()
            y, rounds = Loop(most, go, x, zero)<
                body = b (int64 i, bool c, float[3] v, int64 n) => (bool c2, float[3] v2, int64 n2) {
                    v2 = Add(v, v)
                    total = ReduceSum<keepdims = 0>(v2)
                    c2 = Less(total, bound)
                    one = Constant<value = int64 {1}>()
                    n2 = Add(n, one)
                }
            >
        }"""
    )
    check(network, {"x": np.array([1, 2, 3], np.float32), "most": np.array(most), "bound": np.array(100, np.float32)})


def test_scan_with_two_states_in_reverse() -> None:
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        scan (float[2] s, float[6,2] xs) => (float[2] last, float[6,2] ys) {
            last, ys = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
                body = b (float[2] h, float[2] x) => (float[2] h2, float[2] o) {
                    m = Mul(h, x)
                    h2 = Tanh(m)
                    o = Sub(h2, x)
                }>(s, xs)
        }"""
    )
    check(network, {"s": normal(2), "xs": normal(6, 2, seed=1)})


def test_branch_inside_loop_reads_outer_values() -> None:
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        nested (float[5] x, float[5] w) => (float[5] y) {
            n = Constant<value = int64 {6}>()
            y = Loop(n, , x)<
                body = b (int64 i, bool c, float[5] v) => (bool c2, float[5] v2) {
                    two = Constant<value = int64 {2}>()
                    zero = Constant<value = int64 {0}>()
                    rest = Mod(i, two)
                    even = Equal(rest, zero)
                    v2 = If(even)<
                        then_branch = t () => (float[5] a) { a = Mul(v, w) },
                        else_branch = f () => (float[5] s) { s = Sub(v, x) }
                    >
                    c2 = Identity(c)
                }
            >
        }"""
    )
    check(network, {"x": normal(5), "w": normal(5, seed=1)})
