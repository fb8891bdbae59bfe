"""What NVIDIA's driver says of itself and of the cards, by way of `nvidia-smi`."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.terminal.text import gist, printable

DRIVER_TIMEOUT: Final = 30
"""Seconds in which it answers: a driver that has to be loaded for it takes some."""

FOLDERS: Final = ("/usr/lib/wsl/lib", "/usr/bin", "/usr/local/nvidia/bin")
"""Where it is that PATH may leave out: under Windows, and in containers."""

QUERY: Final = ("--query-gpu=driver_version,name,compute_cap", "--format=csv,noheader")
"""What is asked of each card."""

LOADED: Final = Path("/proc/driver/nvidia/version")
"""What a loaded driver leaves there, also where a container has no nvidia-smi."""

CARD: Final = re.compile(r"(\d+(?:\.\d+)+), (.+), (?:(\d+)\.(\d+)|\[.*\])")
"""A line of its answer, with the compute capability if it is told."""


@dataclass(frozen=True)
class Card:
    """A GPU; its compute capability, if it is told."""

    name: str
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Driver:
    """The driver's version, and the cards that CUDA shows."""

    version: str
    cards: tuple[Card, ...]


def in_words(cards: Sequence[Card]) -> str:
    """Cards as people count them: 2 x NVIDIA H100 80GB HBM3."""
    counted = Counter(card.name for card in cards)
    return ", ".join(f"{number} x {name}" for name, number in counted.items())


def find_driver(visible: str | None) -> Driver | str:
    """The driver here, or why there is none that can be used.

    `visible` is CUDA_VISIBLE_DEVICES, which hides cards.
    """
    elsewhere = os.pathsep.join(FOLDERS)
    command = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=elsewhere)
    if command is None:
        with suppress(OSError):
            loaded = LOADED.read_text(encoding="utf-8", errors="replace")
            if version := re.search(r"\d+(\.\d+)+", loaded):
                return (
                    f"the driver {version.group()} is loaded, but there is no nvidia-smi: "
                    "a container is started with `--gpus all`"
                )
        return "there is no NVIDIA driver here"
    status, said = _ask(command)
    # Beside a card that is lost it may tell of others, and ends with a status all the same.
    found = [each for line in said.splitlines() if (each := CARD.fullmatch(line.strip()))]
    if not found:
        words = printable(gist(said)) if said.strip() else f"nothing, and ends with status {status}"
        return f"no GPU can be used, nvidia-smi says: {words}"
    cards = tuple(_shown([_card(each) for each in found], visible))
    if not cards:
        return f"CUDA_VISIBLE_DEVICES={printable(visible or '')} hides all GPUs"
    return Driver(found[0][1], cards)


def _ask(command: str) -> tuple[int, str]:
    """The exit status of nvidia-smi, and its output."""
    ask = [command, *QUERY]
    try:
        done = subprocess.run(ask, capture_output=True, timeout=DRIVER_TIMEOUT, check=False)
    except OSError as error:
        return 1, f"it cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 1, f"nothing within {DRIVER_TIMEOUT} s"
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def _card(found: re.Match[str]) -> Card:
    _, name, major, minor = found.groups()
    return Card(printable(name), (int(major), int(minor)) if major else None)


def _shown(cards: Sequence[Card], visible: str | None) -> Sequence[Card]:
    """The cards that CUDA_VISIBLE_DEVICES leaves: by number, or as many as it names."""
    if visible is None:
        return cards
    names = visible.split(",")
    if all(name.strip().isdecimal() for name in names):
        return [cards[int(name)] for name in names if int(name) < len(cards)]
    return cards[: sum(name.startswith(("GPU-", "MIG-")) for name in names)]
