"""Runs take turns: in the order in which they are given, in every round, each beside the first."""

from functools import partial

from onnxla.peers.turns import take_turns


def test_every_round_runs_all_of_them_one_after_the_other() -> None:
    log: list[str] = []
    timings = take_turns({name: partial(log.append, name) for name in "abc"}, rounds=2, burst=0.0)
    warm_up, one_round = ["a"] * 3 + ["b"] * 3 + ["c"] * 3, ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert log == warm_up + 2 * one_round  # of each 4 the first is not counted
    assert [(t.name, t.runs) for t in timings] == [("a", 6), ("b", 6), ("c", 6)]
    assert timings[0].ratio == 1.0 and all(0 < t.fastest <= t.median for t in timings)


def test_a_burst_lasts_as_long_as_it_should() -> None:
    few, many = (take_turns({"a": lambda: None}, 1, burst)[0].runs for burst in (0.0, 0.02))
    assert few == 3 and many > 3
