"""The drawn data set: its form, its balance, and its bytes."""

import hashlib

import numpy as np
import pytest

from common.data.synthetic import GARMENTS, synthetic

DIGEST = "8bd2f0bde561cd4fa9baf9e9368a7dd9b64ae153dc510ffaa449acc555296d5f"
WHOLE = "0687274c3ea629c08fb5d2f5689c444997e3ac3b3742e42fa5acb66db64290a5"


def test_shapes_types_and_balance() -> None:
    train_images, train_labels, test_images, test_labels = synthetic(205, 40)
    assert train_images.shape == (205, 28, 28)
    assert test_images.shape == (40, 28, 28)
    assert {a.dtype for a in synthetic(1, 1)} == {np.dtype(np.uint8)}
    assert np.bincount(train_labels).tolist() == [21] * 5 + [20] * 5
    assert np.bincount(test_labels).tolist() == [4] * 10


def test_same_bytes_on_every_machine() -> None:
    drawn = b"".join(part.tobytes() for part in synthetic(100, 20))
    assert hashlib.sha256(drawn).hexdigest() == DIGEST


def test_labels_are_shuffled() -> None:
    _, labels, _, _ = synthetic(100, 10)
    assert labels.tolist() != sorted(labels)
    assert labels.tolist() != [i % 10 for i in range(100)]


def test_another_seed_draws_other_images() -> None:
    first, second = synthetic(50, 10, seed=0), synthetic(50, 10, seed=1)
    assert not np.array_equal(first[0], second[0])
    assert not np.array_equal(first[2], second[2])


def test_the_size_of_one_split_leaves_the_other_alone() -> None:
    small, large = synthetic(10, 30), synthetic(90, 30)
    assert np.array_equal(small[2], large[2])
    assert np.array_equal(small[3], large[3])


@pytest.fixture(scope="module")
def whole() -> tuple[np.ndarray, ...]:
    """As runs take it: each label has several blocks."""
    return synthetic()


def test_the_whole_set_has_the_same_bytes_on_every_machine(whole: tuple[np.ndarray, ...]) -> None:
    drawn = b"".join(part.tobytes() for part in whole)
    assert hashlib.sha256(drawn).hexdigest() == WHOLE


@pytest.mark.parametrize("first", [(7, 3), (1500, None), (None, 1), (0, 700), (99_999, 2_000)])
def test_the_first_examples_are_the_same_without_the_others(
    whole: tuple[np.ndarray, ...], first: tuple[int | None, int | None]
) -> None:
    alone = synthetic(first=first)
    for part, n in enumerate((first[0], first[0], first[1], first[1])):
        assert np.array_equal(alone[part], whole[part][:n])


def test_no_image_occurs_twice() -> None:
    train_images, _, test_images, _ = synthetic(1000, 500)
    images = [image.tobytes() for image in np.concatenate([train_images, test_images])]
    assert len(set(images)) == len(images)


def test_white_garments_on_black() -> None:
    images, labels, _, _ = synthetic(500, 10)
    assert np.median(images) == 0
    for label in range(len(GARMENTS)):
        brightest = images[labels == label].max(axis=(1, 2))
        assert brightest.min() > 50


@pytest.mark.parametrize("arguments", [(0, 10, 0), (10, 0, 0), (10, 10, -1), (10, 10, 2**32)])
def test_refuses_bad_arguments(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        synthetic(*arguments)
