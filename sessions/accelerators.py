"""The build of a framework that sessions install: for CUDA where driver and cards support it.

`ACCELERATOR=cpu` forbids it, `ACCELERATOR=cuda` demands it.
"""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from common.base.errors import RequestError
from common.base.machine import Card, count_cards, find_cards


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

    def refusal(self, cards: Sequence[Card]) -> str:
        """Why it cannot run on this system and cards; empty if it can, or without any."""
        if sys.platform != "linux" or platform.machine() not in self.machines:
            return f"it has no build for GPUs for {sys.platform} on {platform.machine()}"
        for driver in (card.driver for card in cards):
            if numbers(driver) < numbers(self.driver):
                wants = f"{self.cuda}, which takes {self.driver} or later"
                return f"the driver {driver} is too old for {wants}"
        if not all(map(self.serves, cards)):
            known = sorted({card.capability for card in cards if card.capability})
            present = ", ".join("{}.{}".format(*x) for x in known)
            served = f"compute capability {self.cards()}, and not for {count_cards(cards)}"
            return f"its build of {self.cuda} is for {served} ({present})"
        return ""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


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
def cards_here() -> tuple[Card, ...]:
    """The GPUs here; looked up once."""
    return tuple(find_cards(os.environ.get("CUDA_VISIBLE_DEVICES")))


def choose(framework: str, asked: str, cards: tuple[Card, ...]) -> Choice:
    """The build for these cards, where `asked` is the value of `ACCELERATOR`.

    Raises RequestError if CUDA is asked for, and cannot be.
    """
    if asked not in ("", "cpu", "cuda"):
        raise RequestError(f"ACCELERATOR={asked}: set it to cpu or cuda, or not")
    if asked == "cpu":
        return Choice(framework, False, "ACCELERATOR=cpu")
    if reason := BUILDS[framework].refusal(cards):
        if asked:
            raise RequestError(f"{framework}: {reason}; ACCELERATOR=cpu does without GPUs")
        return Choice(framework, False, reason)
    if not cards:  # an image may be built on another machine than it runs on
        unseen = "no GPU is seen here (nvidia-smi, CUDA_VISIBLE_DEVICES)"
        return Choice(framework, bool(asked), unseen)
    return Choice(framework, True, f"{count_cards(cards)}, driver {cards[0].driver}", cards)
