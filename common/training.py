"""The one training loop: every framework, both chapters, any number of devices."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, SupportsFloat

import numpy as np

from common.config import Config
from common.data import Dataset, minibatches, pixels
from common.errors import RunError
from common.interface import Array, Chapter, Weights
from common.progress import Reporter
from common.record import Epoch

PROBE: Final = 100
"""Examples in the probe batch: the first of the test set."""

LAYERS_PROBE: Final = 10
"""Of them, those of which a run keeps what each layer makes: of all it would be 45 MB and more."""

EVALUATION_BATCH: Final = 1000
"""Examples whose logits are computed at once when the test set is evaluated."""


@dataclass(frozen=True)
class Outcome:
    """What a run measured: the loss of every step, every epoch's figures, and tensors.

    The tensors are the first step's gradient (`gradients/NAME`), the final weights
    (`weights/NAME`) and the probe batch's logits (`logits/before`, `logits/after`); if asked for,
    also what each layer makes of its first images (`layers/before/NAME`, `layers/after/NAME`).
    """

    losses: list[float]
    epochs: list[Epoch]
    tensors: Weights


@dataclass(frozen=True)
class Training:
    """One run: a chapter in one framework on its devices, a configuration and its data."""

    chapter: Chapter[Any, Any]
    devices: Sequence[Any]
    config: Config
    data: Dataset
    report: Reporter

    def replicate(self, weights: Weights) -> Any:
        """The chapter's replicas, one on each device."""
        return self.chapter.replicate(weights, self.devices, **self.config.options())

    def train(self, replicas: Any) -> Outcome:
        """Trains the replicas. Raises RunError if the loss is no number or replicas part."""
        probe = pixels(self.data.test_images[:PROBE], self.config.dtype)
        before = self.chapter.predict(probe, replicas, self.devices)
        tensors = self._layers(probe, replicas, "before")
        options = self.config.step_options()
        first = next(self._minibatches(0))
        gradients = self.chapter.gradients(*first, replicas, self.devices, **options)
        losses: list[float] = []
        epochs: list[Epoch] = []
        for epoch, steps in enumerate(steps_of_epochs(self.config)):
            figures, new_losses = self._epoch(replicas, epoch, steps, first_step=len(losses))
            epochs.append(figures)
            losses += new_losses
        tensors |= {f"gradients/{name}": values for name, values in gradients.items()}
        trained = self.chapter.export(replicas)
        require_finite(trained, len(losses))
        tensors |= {f"weights/{name}": values for name, values in trained.items()}
        after = self.chapter.predict(probe, replicas, self.devices)
        tensors |= self._layers(probe, replicas, "after")
        return Outcome(losses, epochs, tensors | {"logits/before": before, "logits/after": after})

    def _layers(self, probe: Array, replicas: Any, when: str) -> Weights:
        """What each layer makes of the first images of the probe batch, if that is asked for."""
        if not self.config.layers:
            return {}
        chapter: Any = self.chapter
        found = chapter.activations(probe[:LAYERS_PROBE], replicas, self.devices)
        return {f"layers/{when}/{name}": found[name] for name in found}

    def _epoch(
        self, replicas: Any, epoch: int, steps: int, first_step: int
    ) -> tuple[Epoch, list[float]]:
        """Trains for `steps` minibatches of one epoch and then evaluates."""
        started = time.perf_counter()
        queued = self._steps(replicas, epoch, steps, first_step)
        self.chapter.synchronize(replicas)
        seconds = time.perf_counter() - started
        losses = finite([float(loss) for loss in queued], first_step)
        figures = Epoch(
            epoch=epoch + 1,
            steps=steps,
            test_accuracy=self.accuracy(replicas),
            seconds=seconds,
            images_per_second=examples_in(self.config, steps) / seconds,
        )
        self.report.epoch(figures, float(np.mean(losses)), len(steps_of_epochs(self.config)))
        return figures, losses

    def _steps(self, replicas: Any, epoch: int, steps: int, first_step: int) -> list[SupportsFloat]:
        """Queues `steps` steps; the losses stay where they are until someone waits for them."""
        losses: list[SupportsFloat] = []
        options = self.config.step_options()
        with self.report.bar(f"epoch {epoch + 1}", steps, self.config.batch_size) as bar:
            for (X, y), _ in zip(self._minibatches(epoch), range(steps), strict=False):
                lr = learning_rate(self.config, first_step + len(losses))
                loss = self.chapter.train_batch(X, y, replicas, self.devices, lr, **options)
                losses.append(loss)
                bar.step(loss)
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

    def accuracy(self, replicas: Any) -> float:
        """The share of the test set that is classified rightly, in 0..1."""
        right = 0
        labels = self.data.test_labels
        for start in range(0, len(labels), EVALUATION_BATCH):
            chosen = slice(start, start + EVALUATION_BATCH)
            X = pixels(self.data.test_images[chosen], self.config.dtype)
            logits = self.chapter.predict(X, replicas, self.devices)
            right += int((logits.argmax(axis=1) == labels[chosen]).sum())
        return right / len(labels)


def steps_of_epochs(config: Config) -> list[int]:
    """How many minibatches each epoch trains on; with `steps`, the last one may be cut short."""
    whole = math.ceil(config.train_examples / config.batch_size)
    if config.steps is None:
        return [whole] * (config.epochs or 0)
    epochs, rest = divmod(config.steps, whole)
    return [whole] * epochs + [rest] * (rest > 0)


def number_of_epochs(config: Config) -> int:
    """How many epochs a run trains, the last one perhaps cut short."""
    whole = math.ceil(config.train_examples / config.batch_size)
    return math.ceil(number_of_steps(config) / whole)


def number_of_steps(config: Config) -> int:
    """How many minibatches a run trains on."""
    whole = math.ceil(config.train_examples / config.batch_size)
    return (config.epochs or 0) * whole if config.steps is None else config.steps


def learning_rate(config: Config, step: int) -> float:
    """That of a step, counted from 0; with linear decay it would be 0 one step after the last."""
    if config.lr_decay == "none":
        return config.lr
    return config.lr * (1 - step / sum(steps_of_epochs(config)))


def examples_in(config: Config, steps: int) -> int:
    """The number of examples in the first `steps` minibatches of an epoch."""
    return min(steps * config.batch_size, config.train_examples)


def require_finite(weights: Weights, steps: int) -> None:
    """Raises RunError if a weight is no number: the last update has no loss to show it."""
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise RunError(f"{name} is not finite after step {steps}: try a smaller --lr")


def finite(losses: list[float], first_step: int) -> list[float]:
    """The losses, if all of them are numbers. Raises RunError that names the first step, else."""
    for step, loss in enumerate(losses, start=first_step + 1):
        if not math.isfinite(loss):
            raise RunError(f"the loss of step {step} is {loss}: try a smaller --lr")
    return losses
