"""The interface of a notebook to the project: devices, data, training with a live curve."""

import logging
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import uuid4

from common.backends.frameworks import IN_PROCESSES
from common.backends.interface import ALONE, Chapter, DeviceRequest
from common.backends.loading import import_backend, package, placed
from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.machine import cores, describe_machine, now, versions
from common.chapters.spec import Options, spec
from common.data.dataset import Dataset, load, numbers
from common.models.weights_file import initial_weights
from common.settings.arguments import all_settings
from common.settings.config import Config
from common.terminal.command import path
from common.training.loop import Outcome, Training
from common.training.reporter import Reporter, closing_line, introduction
from common.training.run import starting_weights
from notebooks.classroom.experiment import in_processes
from notebooks.drawing.pictures import mime_bundle
from notebooks.drawing.plots import curves

FIXED: Final = {"device_kind", "out", "save_weights", "threads"}
"""Flags that a notebook may not set: its devices are fixed, and it writes nothing."""


class Lesson:
    """One chapter in one framework, in a notebook; without a framework, only the machine."""

    def __init__(
        self,
        framework: str = "",
        chapter: str = "",
        device_kind: str = "auto",
        devices: int | None = None,
    ) -> None:
        """Loads the framework, makes its devices, and prints versions and machine.

        Devices are all GPUs, or 2 devices simulated on the CPU; `device_kind` ("cpu" or "gpu") and
        `devices` override this. Raises RequestError if devices or framework are not there.
        """
        self.framework, self.name, self.asked = framework, chapter, device_kind
        if framework:
            if set(versions(package(framework).DISTRIBUTIONS).values()) == {"none"}:
                command = f"`nox -s lab -- {framework}` has it"
                raise RequestError(f"{framework} is not installed here: {command}")
            self.threads = 1 if package(framework).ONE_THREAD_EACH else cores()
            self.imported: Any = import_backend(framework, chapter, self.threads)
            # TensorFlow logs every reduction and every recompilation.
            logging.getLogger(framework).setLevel(logging.ERROR)
            kind, count = placed(framework, device_kind, devices)
            request = DeviceRequest(count, kind, self.threads)
            local = self.imported.devices(ALONE, request)
            self.kind, self.device_names, self.devices = local.kind, local.names(ALONE), local.local
        self._introduce()

    def _introduce(self) -> None:
        machine, day = describe_machine(), now()[:10]
        packages = package(self.framework).DISTRIBUTIONS if self.framework else ()
        installed = versions((*packages, "numpy")).items()
        used = ", ".join(f"{name} {version}" for name, version in installed if version != "none")
        print(f"{used}, Python {sys.version.split()[0]}; {day}")
        print(f"{machine['processor']}, {machine['cores']} cores")
        if self.framework and self.kind == "cpu":
            why = "no GPU: " if self.asked == "auto" else ""
            print(f"{why}{len(self.devices)} devices are simulated on the CPU")
        elif self.framework:
            print(f"devices: {', '.join(self.device_names)}")

    @property
    def chapter(self) -> Chapter:
        """The chapter; from scratch, functions of the notebook replace those of the listing."""
        chapter: Chapter = self.imported
        if self.name == "scratch":
            names = vars(sys.modules["__main__"])
            functions = {name: value for name, value in names.items() if callable(value)}
            listing = SimpleNamespace(**{**vars(self.imported.listing), **functions})
            chapter = replace(self.imported, listing=listing)
        return chapter

    def minibatch(self, examples: int, net: str = "") -> tuple[Array, Array]:
        """The first training examples of a net: X (n, 1, 28, 28) in 0..1, and their classes y (n,).

        Of texts, tokens and labels (n, s), where -1 is none.
        """
        data = loaded(self._options(net).task.dataset or "auto", None)
        return numbers(data.train_images[:examples], data.train_labels[:examples], "float32")

    def weights(self, seed: int = 0, net: str = "") -> Weights:
        """Initial weights by their canonical names, those of the quick preset's net."""
        return initial_weights(self._options(net).shapes(), seed, "float32")

    def _options(self, net: str) -> Options:
        options: Options = spec(self.name).chosen({"net": net} if net else {}, "quick")
        return options

    def train(self, **settings: object) -> Outcome:
        """Trains by the loop of the command line; `settings` are its flags: `batch_size=64`.

        The quick preset has the defaults. Nothing is written. Raises RequestError if a setting is
        refused.
        """
        if fixed := FIXED & settings.keys():
            raise RequestError(f"only the command line can set {', '.join(sorted(fixed))}")
        settings = {"preset": "quick", "threads": self.threads, **settings}
        for name in {"data_dir", "init_weights"} & settings.keys():
            settings[name] = path(str(settings[name])).absolute()
        asked = all_settings(self.framework, self.name, settings)
        data = loaded(asked["dataset"], asked["data_dir"])
        devices = len(self.devices) if asked["devices"] is None else asked["devices"]
        config = Config.of(asked, devices, self.kind).on_data(data.name, *data.sizes())
        if devices > len(self.devices):
            raise RequestError(f"this notebook has {len(self.devices)} devices, not {devices}")
        examples = data.first(config.train_examples, config.test_examples)
        weights = starting_weights(config)
        names, outcome = self.device_names[:devices], Outcome()
        live = Live(config, outcome, quiet=asked["quiet"])
        live.notice(introduction(config, asked["preset"], names))
        apart = config.options.native and self.framework == "pytorch"
        if apart or config.settings().get("wrapper") in IN_PROCESSES:
            where = {"devices": devices, "device_kind": self.kind}
            outcome = in_processes(self.framework, self.name, settings | where)
        else:
            local = self.devices[:devices]
            Training(self.chapter, local, config, examples, live, outcome=outcome).train(weights)
        live.draw(outcome)
        live.notice(closing_line(outcome.epochs, names))
        return outcome


@cache
def loaded(name: str, folder: Path | None) -> Dataset:
    """A data set: Fashion-MNIST, or the synthetic one where it is missing."""
    return load(name, folder, print)


def show(svg: str, **how: Any) -> None:
    """Shows a picture in a notebook; `how` is for IPython's `display`."""
    if "ipykernel" in sys.modules:  # not in a script
        from IPython import display

        display.display(mime_bundle(svg), raw=True, **how)


class Live(Reporter):
    """The curve of one run, and its notices, in the cell that trains."""

    def __init__(self, config: Config, outcome: Outcome, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self.config, self.outcome = config, outcome
        self.place, self.drawn = uuid4().hex, False

    def notice(self, text: str) -> None:
        """Prints a line, unless quiet."""
        if not self.quiet:
            print(text, flush=True)

    def epoch(self, *_: object) -> None:
        """An epoch is done."""
        self.draw(self.outcome)

    def draw(self, outcome: Outcome) -> None:
        """Draws the run so far, in the place of the picture before."""
        if not self.quiet:
            title = f"{self.config.framework}, devices: {self.config.devices}"
            accuracies = [epoch.test_accuracy for epoch in outcome.epochs]
            svg = curves(title, outcome.losses, accuracies)
            show(svg, display_id=self.place, update=self.drawn)
            self.drawn = True
