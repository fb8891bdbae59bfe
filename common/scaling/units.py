"""Times, rates and sizes in three digits."""

from collections.abc import Sequence

from common.scaling.cluster import ITEM

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def seconds(value: float) -> str:
    """A time."""
    return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")))


def rate(per_second: float) -> str:
    """A number of bytes per second."""
    return _scaled(per_second, PREFIXES) + "B/s"


def of_bytes(entries: int) -> str:
    """The size of a vector."""
    size = ITEM * entries
    return f"{size} B" if size < 1000 else _scaled(size, PREFIXES) + "B"


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """The value in the largest unit that leaves at least 1; what rounds to 1,000 takes the next."""
    size, name = next((each for each in units if value >= 0.9995 * each[0]), units[-1])
    scaled = value / size
    if scaled >= 999.5:
        return f"{scaled:,.0f} {name}"
    return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f} {name}"
