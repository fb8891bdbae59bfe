"""Which environment the sessions of a framework take: that for CUDA where the machine serves it.

`ACCELERATOR=cpu` says no, `ACCELERATOR=cuda` says that it has to be; else the driver decides.
"""

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from common.backends.driver import Card, Driver, find_driver, in_words

VARIABLE: Final = "ACCELERATOR"
KINDS: Final = ("cpu", "cuda")

Capability: TypeAlias = tuple[int, int]
"""The compute capability of a card: which machine code it runs."""


class NoAcceleratorError(Exception):
    """What was asked for cannot be had; the message says what to do."""


@dataclass(frozen=True)
class Build:
    """A framework's build for GPUs on Linux.

    `driver` is the least version of the driver that its `cuda` runs on. It has code for cards from
    `oldest` to `newest`; None: for later ones, too. `machines` are the processors it is made for.
    """

    cuda: str
    driver: str
    oldest: Capability
    newest: Capability | None = None
    machines: tuple[str, ...] = ("x86_64", "aarch64")

    def serves(self, card: Card) -> bool:
        """Whether it has code for a card; of one that does not tell what it runs, it is said."""
        known = card.capability or self.oldest
        return self.oldest <= known <= (self.newest or known)

    def cards(self) -> str:
        """The cards that it has code for, in words."""
        first, last = (each and f"{each[0]}.{each[1]}" for each in (self.oldest, self.newest))
        rest = f"{first} to {last}" if last else f"from {first} on"
        return f"compute capability {rest}"


BUILDS: Final[Mapping[str, Build]] = {
    "pytorch": Build("CUDA 13.0", "580.65.06", (7, 5), (12, 9)),
    # For later cards it has no code but that which a driver compiles, which is known to fail.
    "tensorflow": Build("CUDA 12.5", "525.60.13", (6, 0), (9, 0), ("x86_64",)),
    "jax": Build("CUDA 12", "525.60.13", (5, 2)),
    "mxnet": Build("CUDA 11.2", "450.80.02", (5, 0), (8, 9), ("x86_64",)),
}
"""By framework: the build for GPUs in the versions of constraints/.

Cards are those that the wheels themselves name; drivers are from NVIDIA's table of what each major
version of CUDA needs at least.
"""


@dataclass(frozen=True)
class Choice:
    """The environment that a framework's sessions take, and why; `cards` are those it serves."""

    framework: str
    cuda: bool
    why: str
    cards: tuple[Card, ...] = ()

    @property
    def name(self) -> str:
        """What the environment, and the file in constraints/, are called."""
        return f"{self.framework}-cuda" if self.cuda else self.framework

    @property
    def line(self) -> str:
        """What a session says of it."""
        return f"{self.framework} runs in .nox/{self.name}: {self.why}"


def choice(framework: str) -> Choice:
    """What this machine and `ACCELERATOR` make of a framework. Raises NoAcceleratorError."""
    return choose(framework, os.environ.get(VARIABLE, ""), driver())


@cache
def driver() -> Driver | str:
    """NVIDIA's driver here, or why there is none; asked for once."""
    return find_driver(os.environ.get("CUDA_VISIBLE_DEVICES"))


def choose(framework: str, asked: str, found: Driver | str) -> Choice:
    """The environment of a framework, where `ACCELERATOR` and the driver are these.

    Raises NoAcceleratorError if CUDA is asked for, and cannot be.
    """
    if asked and asked not in KINDS:
        raise NoAcceleratorError(f"{VARIABLE}={asked}: set it to {' or '.join(KINDS)}, or not")
    if asked == "cpu":
        return Choice(framework, False, f"{VARIABLE}=cpu")
    build = BUILDS[framework]
    if trouble := _no_build(build) or (_unfit(build, found) if isinstance(found, Driver) else ""):
        if asked:
            raise NoAcceleratorError(f"{framework}: {trouble}; {VARIABLE}=cpu does without GPUs")
        return Choice(framework, False, trouble)
    if isinstance(found, str):
        # An image may be made for another machine than the one that makes it.
        return Choice(framework, bool(asked), f"{VARIABLE}=cuda, but {found}" if asked else found)
    cards = tuple(card for card in found.cards if build.serves(card))
    left_out = [card for card in found.cards if card not in cards]
    hidden = f"; not for {in_words(left_out)}: CUDA_VISIBLE_DEVICES hides it" if left_out else ""
    return Choice(framework, True, f"{in_words(cards)}, driver {found.version}{hidden}", cards)


def _no_build(build: Build) -> str:
    """Why this system can have no build for GPUs; empty if it can."""
    machine = platform.machine()
    if sys.platform == "linux" and machine in build.machines:
        return ""
    return f"it has no build for GPUs for {sys.platform} on {machine}"


def _unfit(build: Build, found: Driver) -> str:
    """Why a build cannot run on what the driver has; empty if it can."""
    if numbers(found.version) < numbers(build.driver):
        return (
            f"the driver {found.version} is too old for {build.cuda}, "
            f"which takes {build.driver} or later"
        )
    if not any(build.serves(card) for card in found.cards):
        return f"its build of {build.cuda} is for {build.cards()}, and not for {_told(found)}"
    return ""


def _told(found: Driver) -> str:
    capabilities = sorted({card.capability for card in found.cards if card.capability})
    told = ", ".join(f"{major}.{minor}" for major, minor in capabilities)
    return f"{in_words(found.cards)} ({told})"


def numbers(version: str) -> list[int]:
    """A version as numbers, which can be compared."""
    return [int(part) for part in version.split(".")]
