"""Times and sizes in three digits."""

from collections.abc import Sequence
from typing import Final

from common.scaling.cluster import ITEM

SECONDS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

BYTES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def seconds(value: float) -> str:
    """A time."""
    return _scaled(value, SECONDS)


def of_bytes(entries: int) -> str:
    """The size of a vector."""
    size = ITEM * entries
    return f"{size} B" if size < 1000 else _scaled(size, BYTES)


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """The value in the largest unit that leaves at least 1; what rounds to 1,000 takes the next."""
    size, name = next((each for each in units if value >= 0.9995 * each[0]), units[-1])
    return f"{value / size:#.3g}".rstrip(".") + f" {name}"
