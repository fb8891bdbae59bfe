"""What a chapter is: title, net, options, presets.

Only the standard library, as for `--help` and for the plan of runs.
"""

from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from common.chapters.suites import Settings, Suite
from common.models.nets import Shapes
from common.parallel.ledger import Usage
from common.parallel.nets import Net
from common.terminal.values import count


def option(default: Any, text: str, **about: Any) -> Any:
    """A field of `Options` with a flag, of which `text` is the help.

    `known` are the words it may be, `least` (1) and `most` the bounds of a number, which `type`
    reads (a count). With `unset`, the flag that is not given is None, whatever the default.
    """
    return field(default=default, metadata={"text": text, "least": 1, **about})


def meanings(known: Mapping[str, str]) -> str:
    """Words and what each means, for a help."""
    return "; ".join(f"{name}: {meaning}" for name, meaning in known.items())


@dataclass(frozen=True)
class Flags:
    """Settings of which each is an `option`."""

    def __post_init__(self) -> None:
        """Raises ValueError if an option has a value that its flag would not take."""
        for each in fields(self):
            value, about = getattr(self, each.name), each.metadata
            values = value if isinstance(value, tuple) else (value,)
            if "known" in about and value not in about["known"]:
                raise ValueError(f"{each.name} {value} is none of {', '.join(about['known'])}")
            if "most" in about and value is not None:
                least, most = about["least"], about["most"]
                if not all(least <= number <= most for number in values):
                    wanted = f"at least {least} and at most {most}"
                    raise ValueError(f"{each.name} {value} is not {wanted}")

    @classmethod
    def add_flags(cls, group: ArgumentGroup, framework: str) -> None:
        """Adds a flag for each option that has one."""
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
    """What only one chapter asks: its subclass has a field for each of the chapter's own flags.

    None: the preset decides.
    """

    # Pydantic reads it: a record with an option that there is not is no record.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    MEANS: ClassVar[tuple[str, ...]] = ()
    """Options that say by which means a run computes, as opposed to what."""

    momentum = 0.0
    """m of each step, v = m v + g and w = w - lr v; a chapter that has it has such an option."""

    native = False
    """Whether the framework's native version splits training, whose messages no run counts."""

    def network(self) -> Net:
        """The net, as its layers."""
        raise NotImplementedError

    def shapes(self) -> Shapes:
        """Canonical names and shapes of the net's weights."""
        return self.network().shapes

    def operations(self) -> int:
        """Floating-point operations of a step for each image: of convolutions and products.

        Backward costs twice what forward does, except in the first layer: the gradient of the
        images is not needed.
        """
        net = self.network()
        work = [net.work(layer) for layer in net.layers]
        return 2 * (3 * sum(work) - work[0])

    def layer_shapes(self) -> Shapes:
        """The shape of each layer's output for one image, if the run keeps that."""
        return {}

    def shards(self, devices: int) -> int | None:
        """How many shards are normalized each for itself; None where devices do not count."""
        return None

    def parts(self, devices: int) -> int:
        """Into how many parts a minibatch is cut, each of which has to get an example."""
        return devices

    def refusal(self, devices: int) -> str:
        """Why so many devices cannot train so, and what to ask for; empty if they can."""
        return ""

    def no_native(self, framework: str) -> str:
        """Why a framework has no native version that trains so; empty if it has."""
        return ""

    def usage(self, devices: int, examples: int, itemsize: int) -> Usage | None:
        """What a step on so many examples sends and keeps, if the chapter's runs count that."""
        return None

    def way(self) -> str:
        """The way to split, as names of runs tell it: a word that begins with a letter.

        Empty if the chapter has one way alone. No preset decides it.
        """
        return ""

    def in_words(self) -> str:
        """The options in words; means are named only if they are not the default."""
        every = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        named = {k: v for k, (v, default) in every.items() if k not in self.MEANS or v != default}
        words = {name.replace("_", " "): value for name, value in named.items()}
        return ", ".join(
            name if value is True else f"{name} {value}" for name, value in words.items()
        )


@dataclass(frozen=True)
class ChapterSpec:
    """All that is known of a chapter as such.

    `heading` is what a report calls it. A preset has settings, by the names of the flags; batch
    size and learning rate of those `per_device` are for one device. `without_gpu` names the preset
    that `auto` is where there is no GPU; else it is "book".
    """

    name: str
    title: str
    heading: str
    options: type[Options]
    presets: Mapping[str, Settings]
    suites: tuple[Suite, ...]
    per_device: tuple[str, ...] = ()
    without_gpu: str = "book"

    def preset(self, name: str, devices: int) -> dict[str, Any]:
        """The settings of a preset on so many devices."""
        preset: dict[str, Any] = {"lr_decay": "none", **self.presets[name]}
        share = devices if name in self.per_device else 1
        return preset | {key: preset[key] * share for key in ("batch_size", "lr")}

    def given(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The chapter's own options among some settings, as far as they are set."""
        names = {each.name for each in fields(self.options)}
        return {k: v for k, v in settings.items() if k in names and v is not None}

    def chosen(self, settings: Mapping[str, Any], preset: str = "") -> Any:
        """The same as `Options`; a preset decides what the settings leave open."""
        decided = self.given(self.presets[preset]) if preset else {}
        return self.options(**decided | self.given(settings))

    def way(self, settings: Mapping[str, Any]) -> str:
        """The way to split of runs with these settings: see `Options.way`."""
        return str(self.chosen(settings).way())
