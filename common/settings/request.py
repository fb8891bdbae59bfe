"""What a command line asks of a run."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from common.backends.devices import DeviceRequest, Process
from common.base.errors import RequestError
from common.chapters.chapters import SPECS
from common.chapters.spec import ChapterSpec, Options
from common.data.dataset import Dataset
from common.settings.arguments import parser
from common.settings.config import Config
from common.terminal.text import storable


@dataclass(frozen=True)
class Request:
    """What a command line asks of a run. None: the preset decides, or what there is."""

    framework: str
    chapter: str
    devices: int | None
    device_kind: str
    threads: int
    preset: str
    batch_size: int | None
    lr: float | None
    lr_decay: str | None
    epochs: int | None
    steps: int | None
    seed: int
    dtype: str
    options: Options
    dataset: str
    data_dir: Path | None
    train_examples: int | None
    test_examples: int | None
    init_weights: Path | None
    save_weights: Path | None
    out: Path
    quiet: bool
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    resume_from: Path | None = None
    launcher: str = "none"
    coordinator: str | None = None
    hosts: int | None = None
    host_rank: int | None = None
    join_timeout: int = 300
    tf32: bool = False
    deterministic: bool = False

    @classmethod
    def of(cls, framework: str, chapter: str, flags: argparse.Namespace) -> Self:
        """What the flags of a chapter's parser ask.

        Raises RequestError if one of them means nothing beside the others.
        """
        kind, given = SPECS[chapter].options, vars(flags)
        if reason := kind.idle(given) or _idle(given):
            raise RequestError(reason)
        own = {each.name for each in fields(kind)}
        options = kind(**{name: given[name] for name in own if given[name] is not None})
        rest = {name: value for name, value in given.items() if name not in own}
        return cls(framework, chapter, options=options, **rest)

    @classmethod
    def from_settings(cls, framework: str, chapter: str, **settings: Any) -> Self:
        """What a command line asks that sets these flags, "_" for "-"; none of them is checked."""
        defaults = vars(parser(framework, chapter).parse_args([]))
        return cls.of(framework, chapter, argparse.Namespace(**defaults | settings))

    @property
    def spec(self) -> ChapterSpec:
        """What is known of the chapter."""
        return SPECS[self.chapter]

    @property
    def wanted(self) -> DeviceRequest:
        """The devices that are asked for."""
        return DeviceRequest(
            self.devices, self.device_kind, self.threads, self.tf32, self.deterministic
        )

    def on_each(self, process: Process) -> DeviceRequest:
        """The devices that are asked for on each host of a run. Raises RequestError."""
        here = self.wanted.on_each(process.count // process.local_count)
        if here.count is not None:
            process.share_of(range(here.count))
        return here

    def require_shareable(self, process: Process) -> None:
        """Raises RequestError if all cannot share devices and minibatch, as far as is known yet."""
        self.on_each(process)
        self.resolve(self.devices or 1, "cpu")

    def resolve(self, devices: int, kind: str) -> Self:
        """The same with nothing left open, on so many devices of a kind ("cpu", "gpu").

        `auto` is the book's preset, where that is no matter of hours. Raises RequestError if a
        minibatch cannot give every part of it an example.
        """
        name = self.preset
        if name == "auto":
            name = "book" if kind == "gpu" else self.spec.without_gpu
        preset = self.spec.presets[name]
        share = devices if preset.per_device else 1
        batch = self.batch_size or preset.batch_size * share
        filled = replace(
            self,
            devices=devices,
            device_kind=kind,
            preset=name,
            batch_size=batch,
            lr=self.lr or preset.lr * share,
            # Single steps are to be what they are in the book.
            lr_decay=self.lr_decay or (preset.lr_decay if self.steps is None else "none"),
            epochs=preset.epochs if self.epochs is None and self.steps is None else self.epochs,
            options=self.options.filled(preset.options),
        )
        if reason := filled.options.refusal(devices):
            raise RequestError(reason)
        if (parts := filled.options.parts(devices)) > batch:
            who = f"{devices} devices" if parts == devices else f"{parts} parts of a step"
            raise RequestError(
                f"{who} cannot share a minibatch of {batch}: "
                "ask for fewer --devices or a larger --batch-size"
            )
        return filled

    def examples(self, data: Dataset) -> Dataset:
        """The part of the data that is asked for, else the preset's, as far as there is any.

        Raises RequestError if a flag asks for more than there is.
        """
        preset = self.spec.presets[self.preset]
        available = data.first(self.train_examples, self.test_examples)
        return available.first(
            self.train_examples or _at_most(preset.train_examples, len(data.train_labels)),
            self.test_examples or _at_most(preset.test_examples, len(data.test_labels)),
        )

    def config(self, data: Dataset) -> Config:
        """The configuration of a request with nothing left open, on this data."""
        shown = {each.name for each in fields(self)} & Config.model_fields.keys()
        settled = {
            "dataset": data.name,
            "train_examples": len(data.train_labels),
            "test_examples": len(data.test_labels),
            "init_weights": self.init_weights and storable(str(self.init_weights)),
        }
        known: dict[str, Any] = {name: getattr(self, name) for name in shown}
        return Config(**known | settled)


def _at_most(wanted: int | None, available: int) -> int:
    return available if wanted is None else min(wanted, available)


def _idle(flags: Mapping[str, Any]) -> str:
    """Which flag means nothing beside the others, in every chapter; empty if none."""
    if flags["deterministic"] and flags["device_kind"] == "cpu":
        return "--deterministic means nothing for --device-kind cpu: it is for GPUs"
    if flags["data_dir"] and flags["dataset"] == "synthetic":
        return "--data-dir means nothing for --dataset synthetic: it is for fashion-mnist"
    return ""
