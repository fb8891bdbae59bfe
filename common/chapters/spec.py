"""What a chapter is: title, net, options, presets. Only the standard library, for `--help`."""

from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, ClassVar, Final, NamedTuple

from common.models.nets import Shapes
from common.parallel.ledger import Usage
from common.parallel.nets import Net
from common.terminal.command import count

Settings = Mapping[str, str | int | float | bool]


def option(default: Any, text: str, *, shown: str = "", **about: Any) -> Any:
    """A field of `Options` with a flag, whose help is `text`, with the default in brackets.

    `known` are its choices, `least` (1) and `most` the bounds of a number, which `type` reads.
    With `unset`, a flag that is not set is None, whatever the default.
    """
    shown = shown or "%(default)s" * (type(default) in (str, int, float))
    text += f" ({shown})" * bool(shown)
    return field(default=default, metadata={"text": text, "least": 1, **about})


def meanings(known: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {meaning}" for name, meaning in known.items())


class Task(NamedTuple):
    """What is learned: a data set ("" for images of garments), and the shapes of an example.

    Examples and labels are bytes; of labels, 255 is none.
    """

    dataset: str
    example: tuple[int, ...]
    label: tuple[int, ...]
    logits: tuple[int, ...]


GARMENTS: Final = Task("", (28, 28), (), (10,))
SUMS: Final = Task("sums", (9,), (9,), (9, 13))
"""Texts of 9 tokens, each one of 13; the labels are the tokens that follow."""


@dataclass(frozen=True)
class Flags:
    """Settings of which each is an `option`."""

    def __post_init__(self) -> None:
        """Raises ValueError if an option has a value that its flag would not take."""
        for each in fields(self):
            value, about = getattr(self, each.name), each.metadata
            values = value if isinstance(value, tuple) else (value,)
            if "known" in about and value not in (None, *about["known"]):
                raise ValueError(f"{each.name} {value} is none of {', '.join(about['known'])}")
            if "most" in about and value is not None:
                least, most = about["least"], about["most"]
                if not all(least <= number <= most for number in values):
                    wanted = f"at least {least} and at most {most}"
                    raise ValueError(f"{each.name} {value} is not {wanted}")

    @classmethod
    def add_flags(cls, group: ArgumentGroup, framework: str) -> None:
        for each in (each for each in fields(cls) if "text" in each.metadata):
            about, flag = each.metadata, f"--{each.name.replace('_', '-')}"
            kind: dict[str, Any] = {"default": None if about.get("unset") else each.default}
            if each.default is False:
                kind["action"] = "store_true"
            elif "known" in about:
                kind["choices"] = about["known"]
            else:
                kind["type"] = about.get("type") or count(about["most"], about["least"])
                kind["metavar"] = about["metavar"]
            group.add_argument(flag, help=about["text"], **kind)


@dataclass(frozen=True)
class Options(Flags):
    """A chapter's own flags, one field each; None: the preset decides."""

    # For pydantic: a record with an unknown option is none.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    MEANS: ClassVar[tuple[str, ...]] = ()
    """Options that say how a run computes, as opposed to what."""

    momentum = 0.0
    """m of each step, v = m v + g and w = w - lr v."""

    net = ""
    """The net, where a chapter has several."""

    clip = 0.0
    """The norm to which the gradient is scaled at most; 0: any."""

    native = False
    """Whether the framework's native version trains, whose traffic is not counted."""

    @property
    def idle(self) -> tuple[str, ...]:
        """Options that mean nothing beside the others."""
        return ()

    @property
    def task(self) -> Task:
        return GARMENTS

    @property
    def state(self) -> tuple[str, ...]:
        """The kinds of numbers that the optimizer keeps for each weight."""
        return ()

    def network(self) -> Net:
        raise NotImplementedError

    def shapes(self) -> Shapes:
        """Canonical names and shapes of the net's weights."""
        return self.network().shapes

    def operations(self) -> int:
        """Floating-point operations of a step per image, of convolutions and dense layers."""
        return self.network().operations()[0]

    def layer_shapes(self) -> Shapes:
        """The shape of each layer's output for one image, if the run keeps it."""
        return {}

    def shards(self, devices: int) -> int | None:
        """The number of shards normalized separately; None if it does not matter."""
        return None

    def parts(self, devices: int) -> int:
        """The number of parts of a minibatch, each of which needs an example."""
        return devices

    def refusal(self, devices: int) -> str:
        """Why so many devices cannot train, and what to ask for; empty if they can."""
        return ""

    def no_native(self, framework: str) -> str:
        """Why a framework has no native version; empty if it has."""
        return ""

    def usage(self, devices: int, examples: int, itemsize: int) -> Usage | None:
        """Traffic and memory of a step on so many examples, if the chapter counts them."""
        return None

    def way(self) -> str:
        """The strategy in a run's name, which begins with a letter; empty if there is one only."""
        return ""

    def describe(self) -> str:
        """The options in words; means only if they are not the default."""
        words = []
        for flag in (flag for flag in fields(self) if flag.name not in self.idle):
            name, value = flag.name.replace("_", " "), getattr(self, flag.name)
            if flag.name not in self.MEANS or value != flag.default:
                words.append(name if value is True else f"{name} {value}")
        return ", ".join(words)


@dataclass(frozen=True)
class ChapterSpec:
    """A chapter; `heading` names it in a report.

    Presets are settings by the names of the flags; batch size and learning rate of those
    `per_device` are for one device. `without_gpu` is the preset `auto` without a GPU. `others` are
    the presets of another net.
    """

    name: str
    title: str
    heading: str
    options: type[Options]
    presets: Mapping[str, Settings]
    per_device: tuple[str, ...] = ()
    without_gpu: str = "book"
    others: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)

    def preset(self, name: str, devices: int, net: str = "") -> dict[str, Any]:
        preset: dict[str, Any] = {"lr_decay": "none", **self.others.get(net, self.presets)[name]}
        share = devices if name in self.per_device else 1
        return preset | {key: preset[key] * share for key in ("batch_size", "lr")}

    def given(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The chapter's own options among the settings, unless they are None."""
        names = {each.name for each in fields(self.options)}
        return {k: v for k, v in settings.items() if k in names and v is not None}

    def chosen(self, settings: Mapping[str, Any], preset: str = "") -> Any:
        """The same as `Options`; a preset decides what the settings leave open."""
        decided = self.given(self.presets[preset]) if preset else {}
        return self.options(**decided | self.given(settings))

    def way(self, settings: Mapping[str, Any]) -> str:
        return str(self.chosen(settings).way())


CHAPTERS: Final = ("scratch", "concise", "strategies")
"""All chapters. Only the one that is asked for is loaded."""


def spec(chapter: str) -> ChapterSpec:
    """What one of `CHAPTERS` is."""
    found: ChapterSpec = import_module(f"common.chapters.{chapter}").CHAPTER
    return found
