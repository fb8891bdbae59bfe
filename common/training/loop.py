"""The training loop of every framework and chapter."""

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, SupportsFloat

import numpy as np

from common.backends.interface import ALONE, Chapter, Process, Trainer
from common.base.arrays import Array, Weights, part
from common.base.errors import RunError, StoppedError
from common.base.machine import peak_memory
from common.base.signals import Stop
from common.data.dataset import Batch, Dataset, inputs, minibatches, numbers
from common.data.sums import NO_LABEL
from common.records.record import Epoch, Split
from common.records.trace import LAYERS_PROBE, PROBE, Trace, checked_images
from common.settings.config import Config
from common.training.checkpoints import Checkpoint, Checkpoints
from common.training.reporter import Reporter


@dataclass
class Outcome:
    """What a run has measured so far: losses of steps, figures of epochs, and tensors.

    The tensors: `gradients/NAME`, of the first step; `weights/NAME`, at the end;
    `probe/images`, with `logits/before` and `logits/after` training; `test/labels`, with
    `test/predictions` after each epoch, `test/logits` after the last one, and some of the
    `test/images`; the trace of `common.records.trace`; with `--layers`, `layers/before/NAME` and
    `layers/after/NAME`. `split` is what the first step counted.
    `seconds` of training and `minibatches`, the digest, are of the epoch under way.
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
    """One run of a chapter in one framework, which may resume from the checkpoint `found`."""

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
        """Trains from these weights. Raises RunError, or StoppedError on a signal."""
        outcome, tensors = self.outcome, self.outcome.tensors
        self.trainer = self.chapter.trainer(weights, self.devices, self.config.options)
        images = self.data.test_images[:PROBE]
        probe = inputs(images, self.config.dtype)
        checked = self.data.test_images[checked_images(self.config)]
        tensors |= {"probe/images": images, "test/images": checked}
        tensors["test/labels"] = self.data.test_labels
        self._add_outputs(probe, "before")
        # Also if it resumes: PyTorch's DDP sums differently in its first pass.
        first = next(self._minibatches(0))
        gradients = self.trainer.gradients(*numbers(*first, self.config.dtype))
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
        tensors, outcome = found.tensors, self.outcome
        self.trainer.restore(part(tensors, "state/"))
        self.trace.tensors |= {k: v for k, v in tensors.items() if k.startswith("trace/")}
        outcome.losses[:] = found.record.losses
        outcome.epochs[:] = found.record.epochs
        outcome.predictions[:] = tensors.get("test/predictions", ())
        outcome.tensors |= {k: v for k, v in tensors.items() if k == "test/logits"}
        outcome.seconds = float(tensors["epoch/seconds"][0])
        outcome.minibatches = tensors["epoch/minibatches"].tobytes()

    def _add_outputs(self, probe: Array, when: str) -> None:
        """Adds the logits of the probe batch and, with `--layers`, the layers' outputs."""
        self.outcome.tensors[f"logits/{when}"] = self.trainer.predict(probe)
        if self.config.options.layer_shapes():
            trainer: Any = self.trainer
            for name, values in trainer.activations(probe[:LAYERS_PROBE]).items():
                self.outcome.tensors[f"layers/{when}/{name}"] = values

    def _run(self) -> None:
        """Trains epoch by epoch to the end. Raises RunError, or StoppedError on a signal."""
        epochs = self.config.number_of_epochs()
        for epoch in range(len(self.outcome.epochs), epochs):
            before = self.config.steps_before(epoch)
            after = self.config.steps_before(epoch + 1)
            self._train(epoch, after - before, before)
            self._evaluate(epoch, after - before, epochs)
            last = epoch + 1 == epochs
            if self.checkpoints and (last or after % self.checkpoints.every == 0):
                self._checkpoint(self.checkpoints)

    def _train(self, epoch: int, steps: int, before: int) -> None:
        """Trains to the end of an epoch of `steps`, with `before` steps before it."""
        queued: list[SupportsFloat] = []
        stops = False
        done = len(self.outcome.losses) - before
        with self.report.bar(f"epoch {epoch + 1}", steps, done) as advance:
            self._start()
            batches = islice(self._minibatches(epoch, done), steps - done)
            for step, batch in enumerate(batches, before + done + 1):
                if stops := self.process.any(self.stop.asked):
                    break
                queued.append(self._step(step, batch))
                advance(queued[-1])
                last = step == before + steps
                if self.checkpoints and not last and step % self.checkpoints.every == 0:
                    self._settle(queued)
                    self._checkpoint(self.checkpoints)
                    self._start()
            self._settle(queued)
        # Gathered again: a process may need the others to settle.
        if self.process.any(self.stop.asked) or stops:
            self._stop()

    def _step(self, step: int, batch: Batch) -> SupportsFloat:
        """Queues a step; its loss stays on the device until something reads it."""
        self.trace.before(step, *batch)
        X, y = numbers(*batch, self.config.dtype)
        content = self.outcome.minibatches + batch[0].tobytes() + y.tobytes()
        self.outcome.minibatches = hashlib.sha256(content).digest()
        loss = self.trainer.train_batch(X, y, self.config.learning_rate(step - 1))
        self.trace.biases.append(self.trainer.bias())
        usage = getattr(self.trainer, "usage", None)  # of strategies by hand
        if usage and self.outcome.split is None:
            counted, events = usage(len(y))
            self.outcome.split = Split(counted=counted, events=events)
        if step in self.trace.around:
            self._pause()
            weights = self._export(step)
            self.trace.after(step, weights, self.trainer.save() if self.trace.asks else {})
            self._start()
        return loss

    def _settle(self, queued: list[SupportsFloat]) -> None:
        """Waits for queued steps and adds their losses. Raises RunError if one is not finite."""
        self._pause()
        losses = [float(loss) for loss in queued]
        self.trace.settle()
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
        if not self.config.state():  # without momentum, the next step needs none
            saved = {name: v for name, v in saved.items() if not name.startswith("momentum/")}
        step = len(self.outcome.losses)
        saved = require_finite(saved, step)
        for name, values in self.trace.state(step).items():
            if not np.array_equal(saved[name], values):
                message = f"{name} in the checkpoint is not that after step {step}"
                raise RunError(message, step=step, tensor=name)
        tensors = {f"state/{name}": np.asarray(values) for name, values in saved.items()}
        tensors["epoch/seconds"] = np.array([self.outcome.seconds])
        tensors["epoch/minibatches"] = np.frombuffer(self.outcome.minibatches, np.uint8)
        if self.outcome.predictions:
            tensors["test/predictions"] = np.stack(self.outcome.predictions)
            tensors["test/logits"] = self.outcome.tensors["test/logits"]
        if self.process.rank == 0:
            measured = {"peak_memory": peak_memory(), "split": self.outcome.split}
            checkpoints.record = checkpoints.record.model_copy(update=measured)
            checkpoints.write(tensors | self.trace.tensors)

    def _stop(self) -> None:
        done, steps = len(self.outcome.losses), self.config.number_of_steps()
        end = "kept no checkpoint"
        if done and self.checkpoints:
            self._checkpoint(self.checkpoints)
            end = "--resume continues from there"
        message = f"stopped after step {done:,} of {steps:,}, and {end}"
        raise StoppedError(message, status=self.stop.status, step=done or None)

    def _evaluate(self, epoch: int, steps: int, epochs: int) -> None:
        """Adds and reports the figures of a finished epoch."""
        outcome = self.outcome
        outcome.tensors["test/logits"] = logits = self._test_logits()
        predictions = logits.argmax(axis=-1).astype(np.uint8)
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

    def _test_logits(self) -> Array:
        """The logits of the test examples."""
        logits = []
        for start in range(0, len(self.data.test_labels), 1000):
            images = self.data.test_images[start : start + 1000]
            logits.append(self.trainer.predict(inputs(images, self.config.dtype)))
        return np.concatenate(logits)

    def _export(self, step: int) -> Weights:
        """The weights after a step. Raises RunError if replicas diverged."""
        try:
            return self.trainer.export()
        except RunError as error:
            error.args, error.step = (f"{error}, after step {step}",), step
            raise


def accuracy(predictions: Array, labels: Array) -> float:
    """The share of examples that are predicted right; of a text, all labels that there are."""
    right = (predictions == labels) | (labels == NO_LABEL)
    return float(right.reshape(len(labels), -1).all(axis=1).mean())


def require_finite(weights: Weights, steps: int) -> Weights:
    """The weights. Raises RunError if one is not finite: no loss shows the last update."""
    for name, values in weights.items():
        if not np.isfinite(values).all():
            message = f"{name} is not finite after step {steps}: try a smaller --lr"
            raise RunError(message, step=steps, tensor=name)
    return weights
