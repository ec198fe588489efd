"""Random programs through the plan and native code give what the interpreter gives, from an arena full of garbage.

A failure prints the seed of its program; hypothesis shrinks it to the smallest one.
"""

from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.codegen.callback_kernels import CallbackKernels, NativePlan, flatten
from tests.codegen.random_programs import random_inputs, random_module


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1 << 30),
    size=st.sampled_from([4, 12, 25]),
    depth=st.integers(0, 3),
    tasks=st.integers(1, 2),
    temporary_bytes=st.sampled_from([0, 100]),
)
def test_random_programs(seed: int, size: int, depth: int, tasks: int, temporary_bytes: int) -> None:
    random = Random(seed)
    module = random_module(random, size, depth)
    native = NativePlan(module, CallbackKernels(tasks, temporary_bytes))
    inputs = random_inputs(random, module)
    for _ in range(2):
        for got, expected in zip(native.run(*inputs), flatten(module.entry.evaluate(*inputs)), strict=True):
            np.testing.assert_array_equal(got, expected)
    assert native.plan.live_bytes <= native.plan.arena_bytes
