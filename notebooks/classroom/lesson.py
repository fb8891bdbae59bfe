"""What a notebook asks of the project: devices, data, and training with a curve that grows."""

import logging
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy

from common.backends.devices import DeviceRequest, Process
from common.backends.interface import Chapter
from common.backends.loading import distributions, import_backend, one_thread_each
from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.machine import cores, describe_machine, now
from common.chapters.chapters import SPECS
from common.data.dataset import Dataset, load
from common.data.minibatches import pixels
from common.models.initial import initial_weights
from common.records.fingerprint import versions
from common.settings.arguments import parser
from common.settings.request import Request
from common.training.loop import Outcome
from common.training.run import given_weights
from notebooks.classroom.live import Live, show
from notebooks.classroom.runs import Work, in_processes

__all__ = ["Lesson", "show"]

FIXED: Final = {"device_kind", "out", "save_weights", "threads"}
"""Flags that a notebook does without: it has its devices already, and writes nothing."""


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

        Devices are every GPU there is, else 2 virtual CPU devices; or of the kind "cpu" or "gpu",
        or so many. Raises RequestError if they, or the framework, cannot be had.
        """
        self.framework, self.name, self.asked = framework, chapter, device_kind
        if framework:
            require_installed(framework)
            alone = one_thread_each(framework)
            self.threads = 1 if alone else cores()
            self.made: Any = import_backend(framework, chapter, self.threads)
            # TensorFlow tells a notebook of every reduction, and of all that it recompiles.
            logging.getLogger(framework).setLevel(logging.ERROR)
            found = self.made.devices(Process(), DeviceRequest(devices, device_kind, self.threads))
            self.kind, self.device_names, self.devices = found.kind, found.names, found.local
        self._introduce()

    def _introduce(self) -> None:
        machine, day = describe_machine(), now()[:10]
        packages = distributions(self.framework) if self.framework else ()
        found = versions((*packages, "numpy")).items()
        known = ", ".join(f"{name} {version}" for name, version in found if version != "none")
        print(f"{known}, Python {sys.version.split()[0]}; {day}")
        print(f"{machine['processor']}, {machine['cores']} cores")
        if self.framework and self.kind == "cpu":
            why = "no GPU: " if self.asked == "auto" else ""
            print(f"{why}{len(self.devices)} virtual devices share the CPU")
        elif self.framework:
            print(f"devices: {', '.join(self.device_names)}")

    @property
    def chapter(self) -> Chapter[Any, Any, Any]:
        """The chapter; from scratch, the notebook's own functions stand in for the listing's."""
        found: Chapter[Any, Any, Any] = self.made
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
        spec = SPECS[self.name]
        options = spec.options().filled(spec.presets["quick"].options)
        return initial_weights(options.shapes(), seed, "float32")

    def train(self, **settings: object) -> Outcome:
        """Trains by the loop of the command line; `settings` are its flags: `batch_size=64`.

        Without others, they are those of the quick preset. Nothing is written. Raises RequestError
        if they cannot be had here.
        """
        request, weights = given_weights(self._request(settings))
        count = request.devices or len(self.devices)
        if count > len(self.devices):
            raise RequestError(f"this notebook has {len(self.devices)} devices, not {count}")
        request = request.resolve(count, self.kind)
        live = Live(quiet=request.quiet)
        data = loaded(request.dataset, request.data_dir)
        work = Work(request, request.examples(data), weights)
        native = self.made.native() if request.options.native else None
        if request.options.in_processes() or (native and native.launch):
            return in_processes(self.chapter, work, live)
        return work.train(self.chapter, self.devices[:count], self.device_names[:count], live.hear)

    def _request(self, settings: Mapping[str, object]) -> Request:
        """What the settings ask for, if a notebook can do it."""
        if fixed := FIXED & settings.keys():
            raise RequestError(f"only the command line can set {', '.join(sorted(fixed))}")
        given = {"preset": "quick", "threads": self.threads, **settings}
        # 0 is a setting, and may be a wrong one; it is equal to False.
        wanted = {k: v for k, v in given.items() if v is not None and v is not False}
        flags = [flag(name, value) for name, value in wanted.items()]
        said = StringIO()
        try:
            with redirect_stderr(said), redirect_stdout(said):
                asked = parser(self.framework, self.name).parse_args(flags)
        except SystemExit:
            raise RequestError(said.getvalue().strip()) from None
        return Request.of(self.framework, self.name, asked)


def require_installed(framework: str) -> None:
    """Raises RequestError if this is the environment of something else."""
    if all(version == "none" for version in versions(distributions(framework)).values()):
        raise RequestError(f"{framework} is not installed here: `nox -s lab -- {framework}` has it")


@cache
def loaded(name: str, folder: Path | None) -> Dataset:
    """A data set: Fashion-MNIST, or the drawn one where it cannot be had."""
    return load(name, folder, print, progress=False)


def flag(name: str, value: object) -> str:
    """A setting as a flag of the command line."""
    written = f"--{name.replace('_', '-')}"
    return written if value is True else f"{written}={value}"
