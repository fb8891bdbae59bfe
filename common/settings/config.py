"""What a run does, once flags, preset and the data set at hand are reconciled."""

import argparse
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from common.base.errors import RequestError
from common.data.dataset import Dataset
from common.settings.chapters import PRESETS
from common.terminal.values import COUNT, LARGEST_SEED

NOT_NUMERICS: Final = {
    "framework",
    "devices",
    "device_kind",
    "threads",
    "preset",
    "allreduce",
    "wrapper",
    "layers",
    "init_weights",  # the weights themselves are known by their digest
}
"""How and where a run computes, as opposed to what."""

Count = Annotated[int, Field(gt=0, le=COUNT)]
"""A number of things that there are."""


class Config(BaseModel):
    """The whole configuration of one run; exactly one of `epochs` and `steps` is set."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    framework: str
    chapter: str
    devices: Count
    device_kind: Literal["auto", "cpu", "gpu"]
    threads: Count
    preset: str
    batch_size: Count
    lr: float
    lr_decay: Literal["none", "linear"] = "none"
    epochs: Count | None
    steps: Count | None
    seed: int = Field(ge=0, le=LARGEST_SEED)
    dtype: Literal["float32", "float64"]
    allreduce: str | None = None
    width: Count | None = None
    batch_norm: Literal["per-device", "sync"] | None = None
    wrapper: str | None = None
    layers: bool = False
    dataset: Literal["fashion-mnist", "synthetic"]
    train_examples: Count
    test_examples: Count
    init_weights: str | None

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("exactly one of epochs and steps is set")
        return self

    def numerics(self) -> dict[str, Any]:
        """What decides the numbers: the same for all runs that must reach the same result.

        With batch normalization per device, the number of devices is a part of it.
        """
        return {**self.model_dump(exclude=NOT_NUMERICS), "shards": self.shards()}

    def rates(self) -> str:
        """The learning rates in words."""
        return f"lr {self.lr:g}{' falling to 0' if self.lr_decay == 'linear' else ''}"

    def shards(self) -> int | None:
        """How many shards are normalized each for itself; None where the devices do not count."""
        return self.devices if self.batch_norm == "per-device" else None

    def options(self) -> dict[str, str]:
        """What `replicate` of this chapter takes besides weights and devices."""
        chosen = {"batch_norm": self.batch_norm, "wrapper": self.wrapper}
        return {name: value for name, value in chosen.items() if value is not None}

    def step_options(self) -> dict[str, str]:
        """What `train_batch` and `gradients` of this chapter take besides."""
        return {} if self.allreduce is None else {"algorithm": self.allreduce}


def preset_name(chapter: str, flags: argparse.Namespace, devices: Sequence[Any] = ()) -> str:
    """The preset that the flags name; `auto` is the book's, where that is no matter of hours."""
    if flags.preset != "auto":
        name: str = flags.preset
        return name
    gpus = any("cpu" not in str(device).lower() for device in devices)
    return "book" if chapter == "scratch" or gpus else "quick"


def with_preset(
    chapter: str, arguments: argparse.Namespace, name: str, devices: int
) -> argparse.Namespace:
    """The arguments, with what no flag set taken from the preset `name`, for so many devices."""
    preset = PRESETS[chapter][name]
    filled = argparse.Namespace(**{**vars(arguments), "preset": name})
    share = devices if preset.per_device else 1
    if filled.batch_size is None:
        filled.batch_size = preset.batch_size * share
    if filled.lr is None:
        filled.lr = preset.lr * share
    if filled.lr_decay is None:  # single steps are to be what they are in the book
        filled.lr_decay = preset.lr_decay if filled.steps is None else "none"
    if filled.epochs is None and filled.steps is None:
        filled.epochs = preset.epochs
    if chapter == "concise" and filled.width is None:
        filled.width = preset.width
    check_batch(filled.batch_size, devices)
    return filled


def take_examples(chapter: str, arguments: argparse.Namespace, data: Dataset) -> Dataset:
    """The part of the data that the flags ask for, else the preset's, as far as there is any.

    Raises RequestError if a flag asks for more than there is.
    """
    preset = PRESETS[chapter][arguments.preset]
    available = data.first(arguments.train_examples, arguments.test_examples)
    return available.first(
        arguments.train_examples or _at_most(preset.train_examples, len(data.train_labels)),
        arguments.test_examples or _at_most(preset.test_examples, len(data.test_labels)),
    )


def check_batch(batch_size: int, devices: int) -> None:
    """Raises RequestError if a minibatch cannot give every device an example."""
    if devices > batch_size:
        raise RequestError(
            f"{devices} devices cannot share a minibatch of {batch_size}: "
            "ask for fewer --devices or a larger --batch-size"
        )


def _at_most(wanted: int | None, available: int) -> int:
    return available if wanted is None else min(wanted, available)
