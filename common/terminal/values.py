"""The numbers that flags take, and the most that each may be.

Only the standard library, so that `--help` is instant.
"""

import argparse
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

Conversion = Callable[[str], float]

COUNT: Final = 2**31 - 1
LARGEST_SEED: Final = 2**32 - 1
"""NumPy takes no larger one, and frameworks keep counts and sizes in 32 bits."""

DEVICES: Final = 64
DEPTH: Final = 60
"""More than a machine has GPUs, and a layer for each. So many simulated devices train in all
frameworks, on two cores within two minutes; on more, JAX and TensorFlow compile for long."""

THREADS: Final = 1024
MICROBATCHES: Final = 1024
REPEATS: Final = 1000
WIDTH: Final = 1024
STEPS: Final = 10_000_000
"""More than is of use. ResNet-18 of that width has 11 GB of weights, and the losses of so many
steps take 320 MB of memory."""


def _number(kind: Callable[[str], float], good: Callable[[float], bool], wanted: str) -> Conversion:
    def convert(text: str) -> float:
        with suppress(ValueError):
            if good(value := kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")

    return convert


def count(most: int = COUNT, least: int = 1) -> Conversion:
    """Reads how many there are of something: from `least` to `most`."""
    wanted = f"a whole number of at least {least} and at most {most}"
    return _number(int, lambda n: least <= n <= most, wanted)


def path(text: str) -> Path:
    """Reads a path; `~` is the user's home, which a shell leaves in `--out=~/runs`."""
    with suppress(RuntimeError):  # no such user: a folder may be called so
        return Path(text).expanduser()
    return Path(text)


def counts(text: str) -> tuple[int, ...]:
    """Reads several such numbers, with commas between them."""
    read = count(DEVICES)
    return tuple(int(read(number)) for number in text.split(","))


seed = _number(int, lambda n: 0 <= n <= LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}")

rank = _number(int, lambda n: 0 <= n < DEVICES, f"a whole number from 0 to {DEVICES - 1}")

distance = _number(float, lambda x: 0 <= x <= 1, "a number of at least 0 and at most 1")

share = _number(float, lambda x: 1e-3 <= x <= 1, "a number of at least 0.001 and at most 1")

above_zero = _number(float, lambda x: math.isfinite(x) and x > 0, "a number above 0")

# What is computed of such numbers is finite.
quantity = _number(float, lambda x: 1e-30 <= x <= 1e30, "a number between 1e-30 and 1e30, as 7e9")
