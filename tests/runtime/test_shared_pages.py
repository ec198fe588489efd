"""Images that share pages: what is shared, that every image comes back, and files that lie about it."""

from pathlib import Path

import numpy as np
import pytest

from onnxla.runtime.shared_pages import PAGE, Extent, map_image, share_pages
from onnxla.runtime.tensors import Array


def random_pages(seed: int, count: int, more: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, count * PAGE + more, np.uint8)


def rebuilt(images: list[Array], folder: Path) -> list[Array]:
    """Each image, through a file of the sections."""
    shared = share_pages(images)
    places = []
    with open(folder / "sections", "w+b") as file:
        for section in shared.sections:
            places.append(file.tell())
            file.write(section)
            file.write(bytes(-file.tell() % PAGE))
        file.flush()
        return [
            map_image(file.fileno(), [(places[e.section] + e.offset, e.size) for e in extents])
            for extents in shared.images
        ]


def test_a_single_image_is_one_section() -> None:
    image = random_pages(0, 100, 5)
    shared = share_pages([image])
    assert [bytes(s) for s in shared.sections] == [image.tobytes()]
    assert shared.images == ((Extent(0, 0, image.nbytes),),)


def test_equal_pages_are_stored_once_wherever_they_are(tmp_path: Path) -> None:
    a, b, c = random_pages(1, 40), random_pages(2, 30), random_pages(3, 20)
    images = [np.concatenate([a, b, c[:77]]), np.concatenate([c, b, a, c[:1000]]), np.concatenate([a, b])]
    shared = share_pages(images)
    assert shared.images[1] == (
        Extent(1, 0, c.nbytes),
        Extent(0, a.nbytes, b.nbytes),
        Extent(0, 0, a.nbytes),
        Extent(2, 0, 1000),
    )
    assert shared.images[2] == (Extent(0, 0, a.nbytes + b.nbytes),)
    assert sum(len(s) for s in shared.sections) == images[0].nbytes + c.nbytes + 1000
    for image, back in zip(images, rebuilt(images, tmp_path), strict=True):
        np.testing.assert_array_equal(image, back)
        assert not back.flags.writeable


def test_pages_of_zeros_and_short_runs(tmp_path: Path) -> None:
    """Zeros equal zeros at many places; a few equal pages are not worth a mapping."""
    zeros, a = np.zeros(50 * PAGE, np.uint8), random_pages(4, 3)
    images = [np.concatenate([zeros, a]), np.concatenate([a, zeros, zeros, a]), np.concatenate([a, zeros[:1]])]
    shared = share_pages(images)
    assert shared.sections[1].nbytes == a.nbytes
    for image, back in zip(images, rebuilt(images, tmp_path), strict=True):
        np.testing.assert_array_equal(image, back)


@pytest.mark.parametrize("seed", range(8))
def test_random_images_come_back(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    stock = [random_pages(k, int(n)) for k, n in enumerate(random.integers(1, 40, 6))]
    images = [
        np.concatenate([stock[k] for k in random.integers(0, 6, 5)] + [random_pages(9, 0, int(random.integers(1, 99)))])
        for _ in range(4)
    ]
    for image, back in zip(images, rebuilt(images, tmp_path), strict=True):
        np.testing.assert_array_equal(image, back)


def test_an_image_of_nothing() -> None:
    nothing = np.zeros(0, np.uint8)
    shared = share_pages([nothing, random_pages(5, 20), nothing])
    assert [[e.size for e in extents] for extents in shared.images] == [[0], [20 * PAGE], [0]]


def test_hashes_that_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxla.runtime.shared_pages._hashes", lambda image: iter([7] * (image.nbytes // PAGE)))
    images = [random_pages(6, 20), random_pages(7, 20)]
    assert len(share_pages(images).sections) == 2
