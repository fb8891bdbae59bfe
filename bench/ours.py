"""Our own chapters, timed as a run trains them."""

from collections.abc import Sequence
from typing import Any

from bench.plan import Workload
from common.backends.interface import Chapter
from common.chapters.spec import Options
from common.data.dataset import Bytes, minibatches, numbers
from common.models.weights_file import initial_weights


class Ours:
    """Training as `common.training.loop` does it: losses stay on the device."""

    def __init__(
        self,
        chapter: Chapter,
        workload: Workload,
        devices: Sequence[Any],
        options: Options,
    ) -> None:
        self.chapter, self.workload = chapter, workload
        weights = initial_weights(options.shapes(), 8, "float32")
        self.trainer = chapter.trainer(weights, devices, options)

    def prepare(self, images: Bytes, labels: Bytes) -> tuple[Bytes, Bytes]:
        """The bytes as they are: a run makes its minibatches while it trains."""
        return images, labels

    def train(self, data: tuple[Bytes, Bytes]) -> None:
        """Trains for one epoch."""
        batches = minibatches(*data, batch_size=self.workload.batch_size, seed=8, epoch=0)
        losses = []
        for images, labels in batches:
            X, y = numbers(images, labels, "float32")
            losses.append(self.trainer.train_batch(X, y, self.workload.lr))
        self.chapter.synchronize(self.trainer.replicas)
        float(losses[-1])
