"""Which build of a framework the sessions install: that for CUDA where driver and cards suit it.

`ACCELERATOR=cpu` forbids it, `ACCELERATOR=cuda` demands it.
"""

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from common.backends.driver import Card, Driver, count_cards, find_driver


class NoAcceleratorError(Exception):
    """`ACCELERATOR` cannot be satisfied; the message says what to do."""


@dataclass(frozen=True)
class Build:
    """A framework's build for GPUs on Linux: its CUDA, and the least version of the driver.

    It has code for compute capabilities from `oldest` to `newest`; None: for later ones, too.
    """

    cuda: str
    driver: str
    oldest: tuple[int, int]
    newest: tuple[int, int] | None = None
    machines: tuple[str, ...] = ("x86_64", "aarch64")

    def serves(self, card: Card) -> bool:
        """Whether it has code for a card; an unknown capability counts as served."""
        known = card.capability or self.oldest
        return self.oldest <= known <= (self.newest or known)

    def cards(self) -> str:
        """The capabilities of cards that it has code for."""
        first, last = (each and f"{each[0]}.{each[1]}" for each in (self.oldest, self.newest))
        return f"{first} to {last}" if last else f"from {first} on"

    def trouble(self, found: Driver | str) -> str:
        """Why it cannot run on this system, driver and cards; empty if it can, or without any."""
        if sys.platform != "linux" or platform.machine() not in self.machines:
            return f"it has no build for GPUs for {sys.platform} on {platform.machine()}"
        if isinstance(found, str):
            return ""
        there, least = (tuple(map(int, x.split("."))) for x in (found.version, self.driver))
        if there < least:
            wants = f"{self.cuda}, which takes {self.driver} or later"
            return f"the driver {found.version} is too old for {wants}"
        if not all(map(self.serves, found.cards)):
            known = sorted({card.capability for card in found.cards if card.capability})
            told = f"{count_cards(found.cards)} ({', '.join('{}.{}'.format(*x) for x in known)})"
            cards = f"compute capability {self.cards()}"
            return f"its build of {self.cuda} is for {cards}, and not for {told}"
        return ""


BUILDS: Final[Mapping[str, Build]] = {
    "pytorch": Build("CUDA 13.0", "580.65.06", (7, 5), (12, 9)),
    # On later cards a driver would have to compile its code, which is known to fail.
    "tensorflow": Build("CUDA 12.5", "525.60.13", (6, 0), (9, 0), ("x86_64",)),
    "jax": Build("CUDA 12", "525.60.13", (5, 2)),
    "mxnet": Build("CUDA 11.2", "450.80.02", (5, 0), (8, 9), ("x86_64",)),
}
"""The builds for GPUs that constraints/ pins.

The wheels name the cards, NVIDIA's table the driver that each major version of CUDA needs.
"""


@dataclass(frozen=True)
class Choice:
    """The build of a framework that sessions install, why, and the cards that it can use."""

    framework: str
    cuda: bool
    why: str
    cards: tuple[Card, ...] = ()

    @property
    def name(self) -> str:
        """The name of the environment, and of the file in constraints/."""
        return f"{self.framework}-cuda" if self.cuda else self.framework

    @property
    def line(self) -> str:
        """What a session says of it."""
        return f"{self.framework} runs in .nox/{self.name}: {self.why}"


def choice(framework: str) -> Choice:
    """The build for this machine. Raises NoAcceleratorError."""
    return choose(framework, os.environ.get("ACCELERATOR", ""), driver())


@cache
def driver() -> Driver | str:
    """NVIDIA's driver here, or why there is none; asked for once."""
    return find_driver(os.environ.get("CUDA_VISIBLE_DEVICES"))


def choose(framework: str, asked: str, found: Driver | str) -> Choice:
    """The build for a driver, where `asked` is the value of `ACCELERATOR`.

    Raises NoAcceleratorError if CUDA is asked for, and cannot be.
    """
    if asked not in ("", "cpu", "cuda"):
        raise NoAcceleratorError(f"ACCELERATOR={asked}: set it to cpu or cuda, or not")
    if asked == "cpu":
        return Choice(framework, False, "ACCELERATOR=cpu")
    build = BUILDS[framework]
    if trouble := build.trouble(found):
        if asked:
            raise NoAcceleratorError(f"{framework}: {trouble}; ACCELERATOR=cpu does without GPUs")
        return Choice(framework, False, trouble)
    if isinstance(found, str):
        # An image may be made for another machine than the one that makes it.
        return Choice(framework, bool(asked), f"ACCELERATOR=cuda, but {found}" if asked else found)
    why = f"{count_cards(found.cards)}, driver {found.version}"
    return Choice(framework, True, why, found.cards)
