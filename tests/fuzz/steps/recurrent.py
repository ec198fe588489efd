"""LSTM, GRU and RNN with all their options."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.graph import Graph, Value

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(g: Graph) -> None:
    op = g.random.choice(list(_GATES))
    time, batch, width, hidden = (g.random.choice((1, 2, 3, 5, 8)) for _ in range(4))
    ways = g.random.choice((1, 2))
    gates = _GATES[op]
    x = g.leaf("float32", (time, batch, width), constant=False)
    weights = g.leaf("float32", (ways, gates * hidden, width), constant=g.chance(0.8))
    again = g.leaf("float32", (ways, gates * hidden, hidden), constant=g.chance(0.8))
    bias = g.leaf("float32", (ways, 2 * gates * hidden), constant=True) if g.chance(0.6) else None
    lengths = g.hold(g.source().integers(1, time + 1, batch).astype(np.int32)) if g.chance(0.2) else None
    first = g.leaf("float32", (ways, batch, hidden)) if g.chance(0.4) else None
    inputs = [x, weights, again, bias, lengths, first]
    direction = "bidirectional" if ways == 2 else g.random.choice(("forward", "reverse"))
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = g.random.randint(0, 1)
    if g.chance(0.2):
        attributes["clip"] = 3.0
    if op == "RNN" and g.chance(0.4):
        attributes["activations"] = ["Sigmoid"] * ways
    bound = 2 * time + 2.0 if first is not None else 2.0
    state = Value("", "float32", (ways, batch, hidden), bound, 1e-4)
    results = [replace(state, shape=(time, *state.shape)), state]
    if op == "LSTM":
        inputs.append(g.leaf("float32", (ways, batch, hidden)) if g.chance(0.3) else None)
        inputs.append(g.leaf("float32", (ways, 3 * hidden), constant=True) if g.chance(0.3) else None)
        results.append(replace(state, bound=time + 2.0, error=1e-3))
    g.node(op, inputs, *results, **attributes)


STEPS: dict[Callable[[Graph], None], float] = {recurrent: 1.5}
SPECIAL = ()
