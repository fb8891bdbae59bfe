"""The build of a framework that sessions install: for CUDA where driver and cards support it.

`ACCELERATOR=cpu` forbids it, `ACCELERATOR=cuda` demands it.
"""

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from common.base.errors import RequestError
from common.base.machine import Card, Driver, count_cards, find_driver


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
        first, last = (x and f"{x[0]}.{x[1]}" for x in (self.oldest, self.newest))
        return f"{first} to {last}" if last else f"from {first} on"

    def refusal(self, driver: Driver | str) -> str:
        """Why it cannot run on this system, driver and cards; empty if it can, or without any."""
        if sys.platform != "linux" or platform.machine() not in self.machines:
            return f"it has no build for GPUs for {sys.platform} on {platform.machine()}"
        if isinstance(driver, str):
            return ""
        version, least = (tuple(map(int, x.split("."))) for x in (driver.version, self.driver))
        if version < least:
            wants = f"{self.cuda}, which takes {self.driver} or later"
            return f"the driver {driver.version} is too old for {wants}"
        if not all(map(self.serves, driver.cards)):
            known = sorted({card.capability for card in driver.cards if card.capability})
            present = ", ".join("{}.{}".format(*x) for x in known)
            cards = f"compute capability {self.cards()}, and not for {count_cards(driver.cards)}"
            return f"its build of {self.cuda} is for {cards} ({present})"
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
    """The build of a framework that sessions install, the reason, and the cards that it can use."""

    framework: str
    cuda: bool
    why: str
    cards: tuple[Card, ...] = ()

    @property
    def name(self) -> str:
        """The name of the environment, and of the file in constraints/."""
        return f"{self.framework}-cuda" if self.cuda else self.framework


@cache
def driver_here() -> Driver | str:
    """NVIDIA's driver here, or why there is none; looked up once."""
    return find_driver(os.environ.get("CUDA_VISIBLE_DEVICES"))


def choose(framework: str, asked: str, driver: Driver | str) -> Choice:
    """The build for a driver, where `asked` is the value of `ACCELERATOR`.

    Raises RequestError if CUDA is asked for, and cannot be.
    """
    if asked not in ("", "cpu", "cuda"):
        raise RequestError(f"ACCELERATOR={asked}: set it to cpu or cuda, or not")
    if asked == "cpu":
        return Choice(framework, False, "ACCELERATOR=cpu")
    build = BUILDS[framework]
    if reason := build.refusal(driver):
        if asked:
            raise RequestError(f"{framework}: {reason}; ACCELERATOR=cpu does without GPUs")
        return Choice(framework, False, reason)
    if isinstance(driver, str):
        # An image may be built on another machine than it runs on.
        why = f"ACCELERATOR=cuda, but {driver}" if asked else driver
        return Choice(framework, bool(asked), why)
    why = f"{count_cards(driver.cards)}, driver {driver.version}"
    return Choice(framework, True, why, driver.cards)
