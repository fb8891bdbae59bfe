"""The drawn data set: its bytes, of all of it and of the first examples alone."""

import hashlib

import numpy as np
import pytest

from common.data.synthetic import synthetic

WHOLE = "0687274c3ea629c08fb5d2f5689c444997e3ac3b3742e42fa5acb66db64290a5"


@pytest.fixture(scope="module")
def whole() -> tuple[np.ndarray, ...]:
    """As runs take it: each label has several blocks."""
    return synthetic()


def test_the_whole_set_has_the_same_bytes_on_every_machine(whole: tuple[np.ndarray, ...]) -> None:
    drawn = b"".join(part.tobytes() for part in whole)
    assert hashlib.sha256(drawn).hexdigest() == WHOLE
    assert [part.shape for part in whole] == [(12_800, 28, 28), (12_800,), (2000, 28, 28), (2000,)]


@pytest.mark.parametrize("first", [(7, 3), (1500, None), (0, 99_999)])
def test_the_first_examples_are_the_same_without_the_others(
    whole: tuple[np.ndarray, ...], first: tuple[int | None, int | None]
) -> None:
    alone = synthetic(first=first)
    for part, n in enumerate((first[0], first[0], first[1], first[1])):
        assert np.array_equal(alone[part], whole[part][:n])
