"""What a notebook asks of the project: devices, data, and training with a curve that grows."""

import logging
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy

from common.backends.devices import DeviceRequest, Process
from common.backends.interface import Chapter
from common.backends.loading import import_backend, package
from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.machine import cores, describe_machine, now
from common.chapters.chapters import SPECS
from common.data.dataset import Dataset, load
from common.data.minibatches import pixels
from common.models.initial import initial_weights
from common.records.fingerprint import versions
from common.settings.arguments import all_settings
from common.settings.config import Config
from common.terminal.values import path
from common.training.loop import Outcome
from common.training.run import given_weights
from notebooks.classroom.live import Live, show
from notebooks.classroom.runs import Work, in_processes

__all__ = ["Lesson", "show"]

FIXED: Final = {"device_kind", "out", "save_weights", "threads"}
"""Flags that a notebook does without: it has its devices already, and writes nothing."""

PATHS: Final = {"data_dir", "init_weights"}
"""Settings that may be words in a notebook."""


class Lesson:
    """One chapter in one framework, in a notebook; without either, the machine and the data."""

    def __init__(
        self,
        framework: str = "",
        chapter: str = "",
        device_kind: str = "auto",
        devices: int | None = None,
    ) -> None:
        """Loads the framework, makes its devices, and says where all of this runs.

        Devices are all GPUs, or 2 devices simulated on the CPU; `device_kind` ("cpu" or "gpu") and
        `devices` override this. Raises RequestError if devices or framework are not there.
        """
        self.framework, self.name, self.asked = framework, chapter, device_kind
        if framework:
            require_installed(framework)
            self.threads = 1 if package(framework).ONE_THREAD_EACH else cores()
            self.made: Any = import_backend(framework, chapter, self.threads)
            # TensorFlow tells a notebook of every reduction, and of all that it recompiles.
            logging.getLogger(framework).setLevel(logging.ERROR)
            found = self.made.devices(Process(), DeviceRequest(devices, device_kind, self.threads))
            self.kind, self.device_names, self.devices = found.kind, found.names, found.local
        self._introduce()

    def _introduce(self) -> None:
        machine, day = describe_machine(), now()[:10]
        packages = package(self.framework).DISTRIBUTIONS if self.framework else ()
        found = versions((*packages, "numpy")).items()
        known = ", ".join(f"{name} {version}" for name, version in found if version != "none")
        print(f"{known}, Python {sys.version.split()[0]}; {day}")
        print(f"{machine['processor']}, {machine['cores']} cores")
        if self.framework and self.kind == "cpu":
            why = "no GPU: " if self.asked == "auto" else ""
            print(f"{why}{len(self.devices)} devices are simulated on the CPU")
        elif self.framework:
            print(f"devices: {', '.join(self.device_names)}")

    @property
    def chapter(self) -> Chapter:
        """The chapter; from scratch, the notebook's own functions stand in for the listing's."""
        found: Chapter = self.made
        if self.name == "scratch":
            inside = vars(sys.modules["__main__"])
            own = {name: each for name, each in inside.items() if callable(each)}
            listing = SimpleNamespace(**{**vars(self.made.listing), **own})
            found = replace(self.made, listing=listing)
        return found

    def minibatch(self, examples: int) -> tuple[Array, Array]:
        """The first training examples: X (n, 1, 28, 28) in 0..1, and their classes y (n,)."""
        data = loaded("auto", None)
        images, labels = data.train_images[:examples], data.train_labels[:examples]
        return pixels(images, "float32"), labels.astype(numpy.int64)

    def weights(self, seed: int = 0) -> Weights:
        """Initial weights by their canonical names, those of the quick preset's net."""
        shapes = SPECS[self.name].chosen({}, "quick").shapes()
        return initial_weights(shapes, seed, "float32")

    def train(self, **settings: object) -> Outcome:
        """Trains by the loop of the command line; `settings` are its flags: `batch_size=64`.

        Without others, they are those of the quick preset. Nothing is written. Raises RequestError
        if they cannot be had here.
        """
        if fixed := FIXED & settings.keys():
            raise RequestError(f"only the command line can set {', '.join(sorted(fixed))}")
        given = {"preset": "quick", "threads": self.threads, **settings}
        given |= {name: path(str(given[name])) for name in PATHS & given.keys()}
        asked, weights = given_weights(all_settings(self.framework, self.name, given))
        data = loaded(asked["dataset"], asked["data_dir"])
        devices = len(self.devices) if asked["devices"] is None else asked["devices"]
        config = Config.of(asked, devices, self.kind, data.name, data.sizes())
        if devices > len(self.devices):
            raise RequestError(f"this notebook has {len(self.devices)} devices, not {devices}")
        live = Live(quiet=asked["quiet"])
        used = data.first(config.train_examples, config.test_examples)
        work = Work(config, asked["preset"], used, weights)
        native = config.options.native and self.made.native_launch
        if native or config.options.in_processes():
            return in_processes(self.chapter, work, live)
        names = self.device_names[:devices]
        return work.train(self.chapter, self.devices[:devices], names, live.hear)


def require_installed(framework: str) -> None:
    """Raises RequestError if this is the environment of something else."""
    if all(version == "none" for version in versions(package(framework).DISTRIBUTIONS).values()):
        raise RequestError(f"{framework} is not installed here: `nox -s lab -- {framework}` has it")


@cache
def loaded(name: str, folder: Path | None) -> Dataset:
    """A data set: Fashion-MNIST, or the drawn one where it cannot be had."""
    return load(name, folder, print)
