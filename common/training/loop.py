"""The one training loop: every framework, both chapters, any number of devices."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.backends.devices import ALONE, Process
from common.backends.interface import Chapter
from common.base.arrays import Array, Weights
from common.base.signals import Stop
from common.data.dataset import Dataset
from common.data.minibatches import pixels
from common.records.contents import LAYERS_PROBE, PROBE
from common.records.record import Epoch
from common.records.trace import Trace
from common.settings.config import Config
from common.training.checkpoints import Checkpoint, Checkpoints
from common.training.epochs import Epochs, exported, first_minibatches
from common.training.finite import require_finite
from common.training.progress import Progress
from common.training.reporter import Reporter


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
    """One run: a chapter in one framework on its devices, a configuration and its data.

    `progress` tells how far it has come, also if it fails. It goes on from a checkpoint `found`.
    """

    chapter: Chapter[Any, Any, Any]
    devices: Sequence[Any]
    config: Config
    data: Dataset
    report: Reporter
    checkpoints: Checkpoints | None = None
    found: Checkpoint | None = None
    stop: Stop = field(default_factory=Stop)
    process: Process = ALONE
    progress: Progress = field(default_factory=Progress)

    def train(self, weights: Weights) -> Outcome:
        """Trains from these weights, a copy of which goes to each device.

        Raises RunError if the loss is no number or replicas diverge, StoppedError if a signal has
        asked for it.
        """
        options, progress = self.config.options, self.progress
        replicas = self.chapter.replicate(weights, self.devices, options)
        images = self.data.test_images[:PROBE]
        probe = pixels(images, self.config.dtype)
        tensors: Weights = {"probe/images": images, "test/labels": self.data.test_labels}
        tensors["logits/before"] = self.chapter.predict(probe, replicas, self.devices)
        tensors |= self._layers(probe, replicas, "before")
        # A run that goes on does this, too: PyTorch's DDP sums otherwise in its very first pass.
        first = next(first_minibatches(self.config, self.data, 0))
        gradients = self.chapter.gradients(*first, replicas, self.devices, options)
        tensors |= {f"gradients/{name}": values for name, values in gradients.items()}
        trace = Trace(self.config, weights)
        self._go_on(replicas, trace)
        self.epochs(replicas, trace).run()
        trained = exported(self.chapter, replicas, len(progress.losses))
        require_finite(trained, len(progress.losses))
        tensors |= {f"weights/{name}": values for name, values in trained.items()}
        tensors["logits/after"] = self.chapter.predict(probe, replicas, self.devices)
        tensors |= self._layers(probe, replicas, "after")
        tensors["test/predictions"] = np.stack(progress.predictions)
        return Outcome(progress.losses, progress.epochs, tensors | trace.tensors)

    def epochs(self, replicas: Any, trace: Trace) -> Epochs:
        """What trains these replicas, epoch by epoch."""
        return Epochs(
            self.chapter,
            replicas,
            self.devices,
            self.config,
            self.data,
            self.report,
            trace,
            self.progress,
            self.checkpoints,
            self.stop,
            self.process,
        )

    def _go_on(self, replicas: Any, trace: Trace) -> None:
        """Puts everything where the checkpoint found it, if there is one."""
        if self.found is not None:
            self.chapter.restore(self.found.state(), replicas, self.devices)
            trace.tensors |= self.found.trace()
            self.found.tell(self.progress)

    def _layers(self, probe: Array, replicas: Any, when: str) -> Weights:
        """What each layer makes of the first images of the probe batch, if that is asked for."""
        if not self.config.options.layer_shapes():
            return {}
        chapter: Any = self.chapter
        found = chapter.activations(probe[:LAYERS_PROBE], replicas, self.devices)
        return {f"layers/{when}/{name}": found[name] for name in found}
