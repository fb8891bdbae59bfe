"""The one training loop: every framework, both chapters, any number of devices."""

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, SupportsFloat

import numpy as np

from common.backends.devices import ALONE, Process
from common.backends.interface import Chapter, Trainer
from common.base.arrays import Array, Weights, part
from common.base.errors import RunError, StoppedError
from common.base.signals import Stop
from common.data.dataset import Dataset
from common.data.minibatches import Batch, minibatches, numbers, pixels
from common.records.record import Epoch, Split
from common.records.trace import LAYERS_PROBE, PROBE, Trace
from common.settings.config import Config
from common.training.checkpoints import Checkpoint, Checkpoints
from common.training.reporter import Bar, Reporter

EVALUATION_BATCH: Final = 1000
"""Examples whose logits are computed at once when the test set is evaluated."""


@dataclass
class Outcome:
    """What a run has measured so far: the loss of every step, every epoch's figures, and tensors.

    By name in the tensors: `gradients/NAME`, of the first step; `weights/NAME`, at the end;
    `probe/images`, and their `logits/before` and `logits/after` training; `test/labels`, and as
    `test/predictions` the class that each epoch ends with for each of them; the trace of
    `common.records.trace`; and, if asked for, outputs of layers for the first probe images,
    `layers/before/NAME` and `layers/after/NAME`. `split` is the traffic and memory of the first
    step, where it is counted. Of the epoch under way, `seconds` are those of training, and
    `minibatches` is the digest of its minibatches.
    """

    losses: list[float] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    tensors: Weights = field(default_factory=dict)
    split: Split | None = None
    predictions: list[Array] = field(default_factory=list)
    seconds: float = 0.0
    minibatches: bytes = b""


@dataclass
class Training:
    """One run: a chapter in one framework on its devices, a configuration and its data.

    It resumes from a checkpoint `found`. `outcome` tells how far it has come, also if it fails;
    of a run that resumes, it has the losses and epochs of the checkpoint.
    """

    chapter: Chapter
    devices: Sequence[Any]
    config: Config
    data: Dataset
    report: Reporter
    checkpoints: Checkpoints | None = None
    found: Checkpoint | None = None
    stop: Stop = field(default_factory=Stop)
    process: Process = ALONE
    outcome: Outcome = field(default_factory=Outcome)
    trainer: Trainer = field(init=False)
    trace: Trace = field(init=False)
    started: float = 0.0

    def train(self, weights: Weights) -> Outcome:
        """Trains from these weights, a copy of which goes to each device.

        Raises RunError if the loss is not finite or replicas diverge, StoppedError if a signal has
        asked for it.
        """
        outcome, tensors = self.outcome, self.outcome.tensors
        self.trainer = self.chapter.trainer(weights, self.devices, self.config.options)
        images = self.data.test_images[:PROBE]
        probe = pixels(images, self.config.dtype)
        tensors |= {"probe/images": images, "test/labels": self.data.test_labels}
        self._add_outputs(probe, "before")
        # A run that resumes does this, too: PyTorch's DDP sums otherwise in its very first pass.
        gradients = self.trainer.gradients(*numbers(*next(self._minibatches(0)), self.config.dtype))
        tensors |= {f"gradients/{name}": values for name, values in gradients.items()}
        self.trace = Trace(self.config, weights)
        if self.found is not None:
            self._restore(self.found)
        self._run()
        steps = len(outcome.losses)
        trained = require_finite(self._export(steps), steps)
        tensors |= {f"weights/{name}": values for name, values in trained.items()}
        self._add_outputs(probe, "after")
        tensors["test/predictions"] = np.stack(outcome.predictions)
        tensors |= self.trace.tensors
        return outcome

    def _restore(self, found: Checkpoint) -> None:
        self.trainer.restore(part(found.tensors, "state/"))
        trace = {k: values for k, values in found.tensors.items() if k.startswith("trace/")}
        self.trace.tensors |= trace
        self.outcome.losses[:], self.outcome.epochs[:] = found.record.losses, found.record.epochs
        self.outcome.predictions[:] = found.tensors.get("test/predictions", ())
        self.outcome.seconds = float(found.tensors["epoch/seconds"][0])
        self.outcome.minibatches = found.tensors["epoch/minibatches"].tobytes()

    def _add_outputs(self, probe: Array, when: str) -> None:
        """Adds the logits of the probe batch and, if asked for, the outputs of layers."""
        self.outcome.tensors[f"logits/{when}"] = self.trainer.predict(probe)
        if self.config.options.layer_shapes():
            trainer: Any = self.trainer
            for name, values in trainer.activations(probe[:LAYERS_PROBE]).items():
                self.outcome.tensors[f"layers/{when}/{name}"] = values

    def _run(self) -> None:
        """Trains epoch by epoch, from where it stands to the end.

        Raises RunError, and StoppedError once a signal has asked for it.
        """
        epochs = self.config.number_of_epochs()
        for epoch in range(len(self.outcome.epochs), epochs):
            before, after = map(self.config.steps_before, (epoch, epoch + 1))
            self._train(epoch, after - before, before)
            self._evaluate(epoch, after - before, epochs)
            last = epoch + 1 == epochs
            if self.checkpoints and (last or self.checkpoints.due(after, ends=True)):
                self._checkpoint(self.checkpoints)

    def _train(self, epoch: int, steps: int, before: int) -> None:
        """Trains to the last of an epoch's `steps`; there were others `before` it."""
        queued: list[SupportsFloat] = []
        stops = False
        done = len(self.outcome.losses) - before
        with self.report.bar(f"epoch {epoch + 1}", steps, self.config.batch_size, done) as bar:
            self._start()
            batches = islice(self._minibatches(epoch, done), steps - done)
            for step, batch in enumerate(batches, before + done + 1):
                if stops := any(self.process.gather(self.stop.asked)):
                    break
                queued.append(self._step(step, batch, bar))
                last = step == before + steps
                if self.checkpoints and not last and self.checkpoints.due(step, ends=False):
                    self._settle(queued)
                    self._checkpoint(self.checkpoints)
                    self._start()
            self._settle(queued)
        # Also where all know it: what one has queued may need the others.
        if any(self.process.gather(self.stop.asked)) or stops:
            self._stop()

    def _step(self, step: int, batch: Batch, bar: Bar) -> SupportsFloat:
        """Queues a step; its loss stays where it is until something waits for it."""
        self.trace.before(step, *batch)
        X, y = numbers(*batch, self.config.dtype)
        self.outcome.minibatches = chained(self.outcome.minibatches, batch[0], y)
        loss = self.trainer.train_batch(X, y, self.config.learning_rate(step - 1))
        bar.step(loss)
        usage = getattr(self.trainer, "usage", None)  # of strategies by hand
        if usage and self.outcome.split is None:
            counted, events = usage(len(y))
            self.outcome.split = Split(counted=counted, events=events)
        if step in self.trace.snapshots:
            self._pause()
            saved = self.trainer.save() if self.config.velocities() else {}
            self.trace.after(step, self._export(step), part(saved, "momentum/"))
            self._start()
        return loss

    def _settle(self, queued: list[SupportsFloat]) -> None:
        """Waits for what is queued; its losses count from now on.

        Raises RunError that names the first step whose loss is no number.
        """
        self._pause()
        losses = [float(loss) for loss in queued]
        for step, loss in enumerate(losses, start=len(self.outcome.losses) + 1):
            if not math.isfinite(loss):
                message = f"the loss of step {step} is {loss}: try a smaller --lr"
                raise RunError(message, step=step)
        self.outcome.losses += losses
        queued.clear()

    def _start(self) -> None:
        self.started = time.perf_counter()

    def _pause(self) -> None:
        """Stops the clock once all queued work is done."""
        self.chapter.synchronize(self.trainer.replicas)
        self.outcome.seconds += time.perf_counter() - self.started

    def _checkpoint(self, checkpoints: Checkpoints) -> None:
        """Writes a checkpoint; all processes save, the first one writes."""
        saved = self.trainer.save()
        if not self.config.velocities():  # without momentum, the next step needs none
            saved = {name: v for name, v in saved.items() if not name.startswith("momentum/")}
        saved = require_finite(saved, len(self.outcome.losses))
        tensors = {f"state/{name}": np.asarray(values) for name, values in saved.items()}
        tensors["epoch/seconds"] = np.array([self.outcome.seconds])
        tensors["epoch/minibatches"] = np.frombuffer(self.outcome.minibatches, np.uint8)
        if self.outcome.predictions:
            tensors["test/predictions"] = np.stack(self.outcome.predictions)
        checkpoints.write(tensors | self.trace.tensors)

    def _stop(self) -> None:
        """Ends the run, as a signal has asked for. Raises StoppedError."""
        done, steps = len(self.outcome.losses), self.config.number_of_steps()
        end = "kept no checkpoint"
        if done and self.checkpoints:
            self._checkpoint(self.checkpoints)
            end = "--resume continues from there"
        message = f"stopped after step {done:,} of {steps:,}, and {end}"
        raise StoppedError(message, status=self.stop.status, step=done or None)

    def _evaluate(self, epoch: int, steps: int, epochs: int) -> None:
        """Adds the figures of an epoch that has come to its end, and reports them."""
        outcome = self.outcome
        predictions = self._predictions()
        figures = Epoch(
            epoch=epoch + 1,
            steps=steps,
            minibatches_sha256=outcome.minibatches.hex(),
            test_accuracy=accuracy(predictions, self.data.test_labels),
            seconds=outcome.seconds,
            images_per_second=self.config.examples_in(steps) / outcome.seconds,
        )
        outcome.predictions.append(predictions)
        outcome.epochs.append(figures)
        outcome.seconds, outcome.minibatches = 0.0, b""
        self.report.epoch(figures, float(np.mean(outcome.losses[-steps:])), epochs)

    def _minibatches(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        data, config = self.data, self.config
        shared = data.train_images, data.train_labels, config.batch_size
        return minibatches(*shared, seed=config.seed, epoch=epoch, skip=skip)

    def _predictions(self) -> Array:
        """The class (n,) that the replicas give each image of the test set, as bytes."""
        classes = []
        for start in range(0, len(self.data.test_labels), EVALUATION_BATCH):
            images = self.data.test_images[start : start + EVALUATION_BATCH]
            logits = self.trainer.predict(pixels(images, self.config.dtype))
            classes.append(logits.argmax(axis=1).astype(np.uint8))
        return np.concatenate(classes)

    def _export(self, step: int) -> Weights:
        """The weights after so many steps. Raises RunError that says so if replicas diverged."""
        try:
            return self.trainer.export()
        except RunError as error:
            error.args, error.step = (f"{error}, after step {step}",), step
            raise


def chained(digest: bytes, *arrays: Array) -> bytes:
    """The SHA-256 over an earlier digest and some arrays."""
    return hashlib.sha256(digest + b"".join(array.tobytes() for array in arrays)).digest()


def accuracy(predictions: Array, labels: Array) -> float:
    """The share of predictions (n,) that are the labels (n,), in 0..1."""
    return int((predictions == labels).sum()) / len(labels)


def require_finite(weights: Weights, steps: int) -> Weights:
    """The weights. Raises RunError if one is not finite: the last update has no loss to show it."""
    for name, values in weights.items():
        if not np.isfinite(values).all():
            message = f"{name} is not finite after step {steps}: try a smaller --lr"
            raise RunError(message, step=steps, tensor=name)
    return weights
