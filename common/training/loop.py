"""The one training loop: every framework, both chapters, any number of devices."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, SupportsFloat

import numpy as np

from common.backends.interface import Chapter
from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.data.dataset import Dataset
from common.data.minibatches import minibatches, pixels
from common.records.contents import LAYERS_PROBE, PROBE
from common.records.record import Epoch
from common.records.trace import Trace
from common.settings.config import Config
from common.settings.steps import examples_in, learning_rate, steps_of_epochs
from common.training.reporter import Reporter

EVALUATION_BATCH: Final = 1000
"""Examples whose logits are computed at once when the test set is evaluated."""


@dataclass(frozen=True)
class Outcome:
    """What a run measured: the loss of every step, every epoch's figures, and tensors.

    The tensors are the first step's gradient (`gradients/NAME`), the final weights
    (`weights/NAME`), the probe batch (`probe/images`) and its logits (`logits/before`,
    `logits/after`), the labels of the test set (`test/labels`) and the class that each epoch ends
    with for each of them (`test/predictions`), and the trace of `common.records.trace`; if asked
    for, also what each layer makes of the first probe images (`layers/before/NAME`,
    `layers/after/NAME`).
    """

    losses: list[float]
    epochs: list[Epoch]
    tensors: Weights


@dataclass(frozen=True)
class Training:
    """One run: a chapter in one framework on its devices, a configuration and its data."""

    chapter: Chapter[Any, Any, Any]
    devices: Sequence[Any]
    config: Config
    data: Dataset
    report: Reporter

    def train(self, weights: Weights) -> Outcome:
        """Trains from these weights, a copy of which goes to each device.

        Raises RunError if the loss is no number or replicas diverge.
        """
        options = self.config.options
        replicas = self.chapter.replicate(weights, self.devices, options)
        images = self.data.test_images[:PROBE]
        probe = pixels(images, self.config.dtype)
        tensors: Weights = {"probe/images": images, "test/labels": self.data.test_labels}
        tensors["logits/before"] = self.chapter.predict(probe, replicas, self.devices)
        tensors |= self._layers(probe, replicas, "before")
        first = next(self._minibatches(0))
        gradients = self.chapter.gradients(*first, replicas, self.devices, options)
        tensors |= {f"gradients/{name}": values for name, values in gradients.items()}
        trace = Trace(self.config, weights)
        epochs, losses, tensors["test/predictions"] = self._epochs(replicas, trace)
        trained = self.export(replicas, len(losses))
        require_finite(trained, len(losses))
        tensors |= {f"weights/{name}": values for name, values in trained.items()}
        tensors["logits/after"] = self.chapter.predict(probe, replicas, self.devices)
        tensors |= self._layers(probe, replicas, "after")
        return Outcome(losses, epochs, tensors | trace.tensors)

    def export(self, replicas: Any, step: int) -> Weights:
        """The weights after so many steps. Raises RunError that says so if replicas diverged."""
        try:
            return self.chapter.export(replicas)
        except RunError as error:
            raise RunError(
                f"{error}, after step {step}", step=step, tensor=error.tensor, device=error.device
            ) from None

    def _layers(self, probe: Array, replicas: Any, when: str) -> Weights:
        """What each layer makes of the first images of the probe batch, if that is asked for."""
        if not self.config.options.layer_shapes():
            return {}
        chapter: Any = self.chapter
        found = chapter.activations(probe[:LAYERS_PROBE], replicas, self.devices)
        return {f"layers/{when}/{name}": found[name] for name in found}

    def _epochs(self, replicas: Any, trace: Trace) -> tuple[list[Epoch], list[float], Array]:
        """Trains and evaluates; every epoch's figures, every loss, every epoch's predictions."""
        figures: list[Epoch] = []
        losses: list[float] = []
        predictions: list[Array] = []
        for epoch, steps in enumerate(steps_of_epochs(self.config)):
            seconds, new_losses = self._epoch(replicas, epoch, steps, trace, len(losses))
            losses += new_losses
            predictions.append(self.predictions(replicas))
            figures.append(
                Epoch(
                    epoch=epoch + 1,
                    steps=steps,
                    test_accuracy=accuracy(predictions[-1], self.data.test_labels),
                    seconds=seconds,
                    images_per_second=examples_in(self.config, steps) / seconds,
                )
            )
            mean_loss = float(np.mean(new_losses))
            self.report.epoch(figures[-1], mean_loss, len(steps_of_epochs(self.config)))
        return figures, losses, np.stack(predictions)

    def _epoch(
        self, replicas: Any, epoch: int, steps: int, trace: Trace, first_step: int
    ) -> tuple[float, list[float]]:
        """Trains for `steps` minibatches of one epoch; the seconds it took, and the losses."""
        started, kept = time.perf_counter(), trace.seconds
        queued = self._steps(replicas, epoch, steps, trace, first_step)
        self.chapter.synchronize(replicas)
        seconds = time.perf_counter() - started - (trace.seconds - kept)
        return seconds, finite([float(loss) for loss in queued], first_step)

    def _steps(
        self, replicas: Any, epoch: int, steps: int, trace: Trace, first_step: int
    ) -> list[SupportsFloat]:
        """Queues `steps` steps; the losses stay where they are until someone waits for them."""
        losses: list[SupportsFloat] = []
        options = self.config.options
        with self.report.bar(f"epoch {epoch + 1}", steps, self.config.batch_size) as bar:
            for (X, y), _ in zip(self._minibatches(epoch), range(steps), strict=False):
                step = first_step + len(losses) + 1
                trace.before(step, X, y)
                lr = learning_rate(self.config, step - 1)
                loss = self.chapter.train_batch(X, y, replicas, self.devices, lr, options)
                losses.append(loss)
                bar.step(loss)
                if step in trace.snapshots:
                    self.chapter.synchronize(replicas)  # what is queued is training
                    trace.after(step, partial(self.export, replicas, step))
        return losses

    def _minibatches(self, epoch: int) -> Iterator[tuple[Array, Array]]:
        config = self.config
        return minibatches(
            self.data.train_images,
            self.data.train_labels,
            batch_size=config.batch_size,
            seed=config.seed,
            epoch=epoch,
            dtype=config.dtype,
        )

    def predictions(self, replicas: Any) -> Array:
        """The class (n,) that the replicas give each image of the test set, as bytes."""
        found = []
        for start in range(0, len(self.data.test_labels), EVALUATION_BATCH):
            images = self.data.test_images[start : start + EVALUATION_BATCH]
            X = pixels(images, self.config.dtype)
            found.append(self.chapter.predict(X, replicas, self.devices).argmax(axis=1))
        classes: Array = np.concatenate(found).astype(np.uint8)
        return classes


def accuracy(predictions: Array, labels: Array) -> float:
    """The share of predictions (n,) that are the labels (n,), in 0..1."""
    return int((predictions == labels).sum()) / len(labels)


def require_finite(weights: Weights, steps: int) -> None:
    """Raises RunError if a weight is no number: the last update has no loss to show it."""
    for name, values in weights.items():
        if not np.isfinite(values).all():
            message = f"{name} is not finite after step {steps}: try a smaller --lr"
            raise RunError(message, step=steps, tensor=name)


def finite(losses: list[float], first_step: int) -> list[float]:
    """The losses, if all of them are numbers. Raises RunError that names the first step, else."""
    for step, loss in enumerate(losses, start=first_step + 1):
        if not math.isfinite(loss):
            message = f"the loss of step {step} is {loss}: try a smaller --lr"
            raise RunError(message, step=step)
    return losses
