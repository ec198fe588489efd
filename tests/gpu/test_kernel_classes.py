"""Each class of kernels on awkward sizes through a `Device`: the simulated one here, and a GPU where there is one."""

import numpy as np
import pytest

from tests.gpu.devices import BOTH, device_named
from tests.gpu.kernel_classes import AWKWARD
from tests.gpu.running import reference, run_on, samples


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", AWKWARD)
def test_kernels_are_right_and_repeat_to_the_bit(name: str, kind: str) -> None:
    device = device_named(kind)
    instruction = AWKWARD[name]()
    arrays = samples(instruction)
    first, second = (run_on(device, instruction, arrays) for _ in range(2))
    for ours, again, theirs in zip(first, second, reference(instruction, arrays), strict=True):
        assert ours.tobytes() == again.tobytes() and ours.dtype == theirs.dtype
        tolerance = 2e-2 if ours.dtype.itemsize == 2 else 4e-3 if "f16" in name else 1e-4
        np.testing.assert_allclose(ours.astype("f8"), theirs.astype("f8"), tolerance, tolerance)
