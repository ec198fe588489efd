"""The images that the classifier in `saved_models/` was trained with, the same as in make_saved_models.py."""

import numpy as np
import numpy.typing as npt

Batch = tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]


def batches(steps: int, size: int = 16) -> list[Batch]:
    """Images of four classes: noise, and a bright quarter that tells the class."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(steps):
        labels = rng.integers(0, 4, size).astype(np.int32)
        images = rng.normal(0, 0.3, (size, 8, 8, 1)).astype(np.float32)
        for image, label in zip(images, labels, strict=True):
            image[4 * (label // 2) : 4 * (label // 2) + 4, 4 * (label % 2) : 4 * (label % 2) + 4] += 1
        found.append((images, labels))
    return found
