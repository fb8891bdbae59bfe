"""NVIDIA's driver and the cards, as `nvidia-smi` reports them."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.terminal.text import gist, printable

DRIVER_TIMEOUT: Final = 30
"""Seconds in which it answers: a driver that has to be loaded for it takes some."""

VISIBLE: Final = os.environ.get("CUDA_VISIBLE_DEVICES")
"""Its first value: a run hides the GPUs that it does not use."""


@dataclass(frozen=True)
class Card:
    """A GPU; its compute capability, if it is known."""

    name: str
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Driver:
    """The driver's version, and the cards that CUDA shows."""

    version: str
    cards: tuple[Card, ...]


def count_cards(cards: Sequence[Card]) -> str:
    """Cards by name and number, such as 2 x NVIDIA H100 80GB HBM3."""
    counted = Counter(card.name for card in cards)
    return ", ".join(f"{number} x {name}" for name, number in counted.items())


def find_driver(visible: str | None) -> Driver | str:
    """The driver, or why none can be used. `visible`: CUDA_VISIBLE_DEVICES, which hides cards."""
    if (command := shutil.which("nvidia-smi")) is None:
        return "there is no NVIDIA driver here"
    try:
        query = [command, "--query-gpu=driver_version,name,compute_cap", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, timeout=DRIVER_TIMEOUT, check=False)
        answer = (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        answer = f"nothing within {DRIVER_TIMEOUT} s"
    # Beside a lost card it may list others, and still end with another status than 0.
    row = re.compile(r"(\d+(?:\.\d+)+), (.+), (?:(\d+)\.(\d+)|\[.*\])")
    rows = [match for line in answer.splitlines() if (match := row.fullmatch(line.strip()))]
    if not rows:
        return f"no GPU can be used, nvidia-smi says: {printable(gist(answer))}"
    cards = [
        Card(printable(name), (int(major), int(minor)) if major else None)
        for _, name, major, minor in map(re.Match.groups, rows)
    ]
    if visible is not None:
        chosen = visible.split(",")
        if all(name.strip().isdecimal() for name in chosen):
            cards = [cards[int(name)] for name in chosen if int(name) < len(cards)]
        else:
            cards = cards[: sum(name.startswith(("GPU-", "MIG-")) for name in chosen)]
    if not cards:
        return f"CUDA_VISIBLE_DEVICES={printable(visible or '')} hides all GPUs"
    return Driver(rows[0][1], tuple(cards))


def available_gpus() -> int:
    """The number of GPUs that the driver shows."""
    driver = find_driver(os.environ.get("CUDA_VISIBLE_DEVICES"))
    return len(driver.cards) if isinstance(driver, Driver) else 0


def gpus_here() -> dict[str, str | int]:
    """The GPUs that a run could choose from, and NVIDIA's driver."""
    if isinstance(driver := find_driver(VISIBLE), str):  # the framework may see more
        return {"gpus": "unknown", "driver": "unknown"}
    return {"gpus": count_cards(driver.cards), "driver": driver.version}
