"""What a run computes: flags, presets, suites and records are ways to write it."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from common.backends.interface import DeviceRequest
from common.base.errors import RequestError
from common.chapters.spec import CHAPTERS, Options, spec
from common.models.nets import Shapes, trainable
from common.parallel.ledger import Usage
from common.terminal.command import COUNT, DEVICES, LARGEST_SEED

MEANS: Final = {
    "framework",
    "devices",
    "device_kind",
    "threads",
    "deterministic",
    "preset",
    "init_weights",
}
"""How and where a run computes, not what; initial weights are compared by digest."""

ITEMSIZE: Final = {"float32": 4, "float64": 8}

Count = Annotated[int, Field(gt=0, le=COUNT)]


@cache  # it takes longer to make than a record takes to read
def validator(chapter: str) -> TypeAdapter[Any]:
    """Validates a chapter's options."""
    return TypeAdapter(spec(chapter).options)


class Config(BaseModel):
    """The configuration of a run; exactly one of `epochs` and `steps` is set."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    framework: str
    chapter: str
    devices: int = Field(gt=0, le=DEVICES)
    device_kind: Literal["cpu", "gpu"]
    threads: Count
    tf32: bool = False
    deterministic: bool = False
    preset: str
    batch_size: Count
    lr: float = Field(gt=0)
    lr_decay: Literal["none", "linear"] = "none"
    epochs: Count | None
    steps: Count | None
    seed: int = Field(ge=0, le=LARGEST_SEED)
    dtype: Literal["float32", "float64"]
    options: SerializeAsAny[Options]
    dataset: Literal["fashion-mnist", "synthetic", "sums"]
    train_examples: Count
    test_examples: Count
    init_weights: str | None

    @field_validator("options", mode="wrap")
    @classmethod
    def _of_the_chapter(cls, value: Any, _: Any, info: ValidationInfo) -> Options:
        if isinstance(value, Options):
            return value
        if (chapter := info.data.get("chapter")) not in CHAPTERS:
            raise ValueError(f"the chapter {chapter} is not known here")
        found: Options = validator(chapter).validate_python(value)
        return found

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("exactly one of epochs and steps is set")
        if reason := self.options.refusal(self.devices):
            raise ValueError(reason)
        if self.options.native and (reason := self.options.no_native(self.framework)):
            strategy = self.settings()["strategy"]
            raise ValueError(f"--native --strategy {strategy}: {reason}")
        if (parts := self.options.parts(self.devices)) > self.batch_size:
            who = "devices" if parts == self.devices else "parts of a step"
            what = f"{parts} {who} cannot share a minibatch of {self.batch_size}"
            raise ValueError(f"{what}: ask for fewer --devices or a larger --batch-size")
        return self

    @classmethod
    def of(cls, settings: Mapping[str, Any], devices: int, kind: str) -> Self:
        """The configuration on so many devices of a kind, "cpu" or "gpu", before data are loaded.

        `settings` has all flags; the preset decides those that are None. Raises RequestError.
        """
        chapter, name = spec(settings["chapter"]), settings["preset"]
        data, net = settings["dataset"], settings.get("net", "")
        on_cpu, texts = settings["device_kind"] == "cpu", net in ("gpt", "moe")
        for flag, idle, where, why in (
            ("tf32", kind == "cpu", "CPU devices", "it is for GPUs"),
            ("deterministic", on_cpu, "--device-kind cpu", "it is for GPUs"),
            ("data_dir", data == "synthetic", "--dataset synthetic", "it is for fashion-mnist"),
            ("dataset", texts and data != "auto", f"--net {net}", "it learns from sums"),
            ("data_dir", texts, f"--net {net}", "it learns from sums"),
        ):
            if settings[flag] and idle:
                raise RequestError(f"--{flag.replace('_', '-')} means nothing for {where}: {why}")
        if name == "auto":
            name = "book" if kind == "gpu" else chapter.without_gpu
        preset = chapter.preset(name, devices, net)
        if settings["steps"] is not None:  # single steps are as in the book
            preset |= {"epochs": None, "lr_decay": "none"}
        start = settings["init_weights"]
        preset = {"steps": None, "train_examples": COUNT, "test_examples": COUNT, **preset}
        chosen = {**preset, **{k: v for k, v in settings.items() if v is not None}}
        chosen |= {"devices": devices, "device_kind": kind, "preset": name, "dataset": "synthetic"}
        chosen |= {"options": chapter.given(chosen), "init_weights": start and str(start)}
        try:
            return cls(**{k: v for k, v in chosen.items() if k in cls.model_fields})
        except ValidationError as error:
            raise RequestError(_refusal(error)) from None

    def on_data(self, dataset: str, train_examples: int, test_examples: int) -> Self:
        """The same on a data set that has so many examples."""
        most = {"train_examples": train_examples, "test_examples": test_examples}
        sizes = {name: min(getattr(self, name), size) for name, size in most.items()}
        return self.model_copy(update={"dataset": dataset, **sizes})

    @property
    def request(self) -> DeviceRequest:
        """The devices that are asked for."""
        how = self.threads, self.tf32, self.deterministic
        return DeviceRequest(self.devices, self.device_kind, *how)

    def settings(self) -> dict[str, Any]:
        """Every setting by its name, the chapter's own options among them."""
        return {**self.model_dump(exclude={"options"}), **asdict(self.options)}

    def numerics(self) -> dict[str, Any]:
        """What decides the numbers; with batch normalization per device, their number does."""
        means = {*MEANS, *self.options.MEANS}
        decide = {name: value for name, value in self.settings().items() if name not in means}
        return {**decide, "shards": self.options.shards(self.devices)}

    def rates(self) -> str:
        return f"lr {self.lr:g}{' falling to 0' if self.lr_decay == 'linear' else ''}"

    @property
    def net(self) -> str:
        """The net where nets are told apart: "gpt", "moe", or a chapter's by the chapter's name."""
        return self.options.net if self.options.net in ("gpt", "moe") else self.chapter

    def shapes(self) -> Shapes:
        return self.options.shapes()

    def state(self) -> Shapes:
        """Names and shapes of the optimizer's state, as `momentum/NAME`; none without momentum."""
        kinds = self.options.state if self.options.momentum else ()
        trained = {name: shape for name, shape in self.shapes().items() if trainable(name)}
        return {f"{kind}/{name}": shape for kind in kinds for name, shape in trained.items()}

    def usage(self, examples: int) -> Usage | None:
        if self.options.native:
            return None
        return self.options.usage(self.devices, examples, ITEMSIZE[self.dtype])

    def steps_of_whole(self) -> int:
        """The number of minibatches in a whole epoch; the last may be short."""
        return math.ceil(self.train_examples / self.batch_size)

    def number_of_steps(self) -> int:
        return self.steps or (self.epochs or 0) * self.steps_of_whole()

    def number_of_epochs(self) -> int:
        """The number of epochs; with `steps`, the last may be short."""
        return math.ceil(self.number_of_steps() / self.steps_of_whole())

    def steps_before(self, epoch: int) -> int:
        """The number of minibatches before an epoch, counted from 0, of those of the run."""
        return min(epoch * self.steps_of_whole(), self.number_of_steps())

    def learning_rate(self, step: int) -> float:
        """The rate of a step, counted from 0; linear decay reaches 0 after the last."""
        done = step / self.number_of_steps() if self.lr_decay == "linear" else 0
        return self.lr * (1 - done)

    def examples_in(self, steps: int) -> int:
        """The number of examples in the first `steps` minibatches of an epoch."""
        return min(steps * self.batch_size, self.train_examples)


def _refusal(error: ValidationError) -> str:
    """Why the settings are refused, in a line."""
    first = error.errors()[0]
    if "error" in (context := first.get("ctx", {})):
        return str(context["error"])
    flag = str(first["loc"][-1]).replace("_", "-")
    return f"--{flag} {first['input']}: {first['msg']}"
