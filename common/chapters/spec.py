"""What a chapter is: title, net, options, presets.

Only the standard library, as for `--help` and for the plan of runs.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from common.chapters.suites import Settings, Suite
from common.models.nets import Shapes
from common.parallel.ledger import Usage
from common.parallel.schedules import Traffic


@dataclass(frozen=True)
class Preset:
    """What a preset sets; None for examples means all that the data set has.

    With `per_device`, batch size and learning rate are those of one device, and grow with the
    number of devices. `options` are the chapter's own.
    """

    batch_size: int
    lr: float
    epochs: int
    train_examples: int | None = None
    test_examples: int | None = None
    per_device: bool = False
    lr_decay: str = "none"
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class OneOf:
    """Marks an option of which a record has one of the known values, as pydantic reads it."""

    known: Collection[str]

    def __get_pydantic_core_schema__(self, _: Any, handler: Callable[[Any], Any]) -> Any:
        """Asks for the schema of a literal."""
        return handler(Literal[tuple(self.known)])


@dataclass(frozen=True)
class UpTo:
    """Marks an option of which a record has a number from `least` to `most`, of their type."""

    most: float
    least: float = 1

    def __get_pydantic_core_schema__(self, _: Any, handler: Callable[[Any], Any]) -> Any:
        """Asks for the schema of such a number."""
        from pydantic import Field

        bounds = Field(ge=self.least, le=self.most, allow_inf_nan=False)
        return handler(Annotated[type(self.most), bounds])


@dataclass(frozen=True)
class Options:
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
    """Whether training is split by the framework's own means, whose messages no run counts."""

    def net(self) -> str:
        """The net, in words."""
        raise NotImplementedError

    def shapes(self) -> Shapes:
        """Canonical names and shapes of the net's weights."""
        raise NotImplementedError

    def positions(self, layer: str) -> int:
        """At how many positions of an image a layer is applied."""
        raise NotImplementedError

    def layer_shapes(self) -> Shapes:
        """The shape of what each layer makes of one image, if the run keeps that."""
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

    @classmethod
    def idle(cls, flags: Mapping[str, Any]) -> str:
        """Which flag means nothing beside the others, and why; empty if none."""
        return ""

    def usage(self, devices: int, examples: int, itemsize: int) -> Usage | None:
        """What a step on so many examples sends and keeps, if the chapter's runs count that."""
        return None

    def traffic(self, devices: int, itemsize: int) -> Traffic | None:
        """What the devices send and receive to sum one gradient, if that is known.

        A number has so many bytes.
        """
        return None

    def way(self) -> str:
        """The way to split, as names of runs tell it: a word that begins with a letter.

        Empty if the chapter has one way alone. No preset decides it.
        """
        return ""

    def in_processes(self) -> bool:
        """Whether each device has a process of its own."""
        return False

    def set_apart(self, suite: str) -> list[str]:
        """What of the options sets the runs of a suite apart from others of the chapter."""
        return []

    def in_words(self) -> str:
        """What an introduction says of the options; empty if nothing."""
        return ""

    def filled(self, settings: Settings) -> Self:
        """These options; what is None is taken from the settings."""
        missing = {name for name, value in asdict(self).items() if value is None}
        return replace(self, **{name: settings[name] for name in missing & settings.keys()})


@dataclass(frozen=True)
class ChapterSpec:
    """All that is known of a chapter as such.

    `heading` is what a report calls it. `without_gpu` names the preset that `auto` is where there
    is no GPU; else it is "book". `add_flags` adds the flags of `options` to a parser, for a
    framework. `of_weights` tells the options that the shapes in a file of weights decide.
    """

    name: str
    net: str
    title: str
    heading: str
    options: type[Options]
    add_flags: Callable[[Callable[..., Any], str], None]
    presets: Mapping[str, Preset]
    suites: tuple[Suite, ...]
    without_gpu: str = "book"
    of_weights: Callable[[Callable[[str], tuple[int, ...]]], Settings] = lambda shape_in: {}

    def way(self, settings: Settings) -> str:
        """The way to split of runs with these settings: see `Options.way`."""
        own = {each.name for each in fields(self.options)} & settings.keys()
        return self.options(**{name: settings[name] for name in own}).way()

    def of_the_book(self) -> Options:
        """The options of the book's preset."""
        return self.options().filled(self.presets["book"].options)
