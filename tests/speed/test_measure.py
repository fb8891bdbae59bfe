"""One measurement: what is compiled before the clock starts."""

import pytest

from bench.measure import Measurement
from bench.plan import Entry
from common.data.dataset import Bytes, Dataset
from common.data.synthetic import synthetic


class Noted:
    """A contender that notes how many examples each minibatch of a pass has."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size, self.passes = batch_size, list[list[int]]()

    def prepare(self, images: Bytes, labels: Bytes) -> list[int]:
        assert len(images) == len(labels)
        starts = range(0, len(images), self.batch_size)
        return [len(images[start : start + self.batch_size]) for start in starts]

    def train(self, data: list[int]) -> None:
        self.passes.append(data)


@pytest.mark.parametrize("count", [600, 768])
def test_every_shape_is_compiled_before_the_clock_starts(count: int) -> None:
    noted = Noted(256)
    data = Dataset("synthetic", *synthetic(count, 1))
    figures = Measurement(Entry("jax", "scratch", "keras", 1), data, 0.0).figures(noted)
    *before, timed = noted.passes
    assert {shape for each in before for shape in each} == set(timed)
    assert sum(timed) == count
    assert figures["images_per_second"] > 0
