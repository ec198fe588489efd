"""Packing lifetimes into one block."""

from hypothesis import given
from hypothesis import strategies as st

from onnxla.codegen.arena import Lifetime, live_bytes, pack_arena

lifetimes = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.sampled_from([0, 1, 64, 100, 1000, 4096])).map(
        lambda t: Lifetime(t[0], t[0] + t[1], t[2])
    ),
    max_size=30,
)


@given(lifetimes)
def test_what_lives_together_does_not_overlap(lives: list[Lifetime]) -> None:
    packing = pack_arena(lives)
    for k, (a, x) in enumerate(zip(lives, packing.offsets, strict=True)):
        assert x % 64 == 0 and x + a.bytes <= packing.bytes
        for b, y in zip(lives[:k], packing.offsets, strict=False):
            apart_in_time = a.last < b.first or b.last < a.first
            assert apart_in_time or x + a.bytes <= y or y + b.bytes <= x
    assert live_bytes(lives) <= packing.bytes


def test_a_chain_needs_two_buffers() -> None:
    assert pack_arena([Lifetime(k, k + 1, 64) for k in range(10)]).bytes == 128


def test_the_tightest_gap_is_taken() -> None:
    frame = [Lifetime(0, 9, 512), Lifetime(0, 4, 256), Lifetime(0, 9, 320), Lifetime(0, 4, 128), Lifetime(0, 9, 64)]
    assert pack_arena([*frame, Lifetime(5, 9, 128)]).bytes == live_bytes(frame)


def test_nothing_takes_nothing() -> None:
    assert pack_arena([]).bytes == 0
    assert pack_arena([Lifetime(0, 3, 0)]).bytes == 0
