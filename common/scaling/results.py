"""What was measured: constants, and allreduces beside their predictions. Times are in seconds."""

from dataclasses import dataclass
from typing import Final

LIMITS: Final = (2**15, 2**20)
"""The most entries of a short vector, 131 kB, and of one of medium length, 4.2 MB."""


@dataclass(frozen=True)
class Line:
    """The cost of a call: a fixed time, and a time per entry. Neither is negative."""

    fixed: float
    per_entry: float

    def __call__(self, entries: float) -> float:
        """The seconds for a vector of that many entries."""
        return self.fixed + self.per_entry * entries


@dataclass(frozen=True)
class Lines:
    """A line for short vectors, for medium and for long ones.

    Frameworks use more threads for vectors that are not short, and no cache holds long ones.
    """

    short: Line
    medium: Line
    long: Line

    def __call__(self, entries: float) -> float:
        """The seconds for a vector of that many entries."""
        return self.pieces()[piece(entries)](entries)

    def pieces(self) -> tuple[Line, Line, Line]:
        """The three lines, the one for short vectors first."""
        return self.short, self.medium, self.long


def piece(entries: float) -> int:
    """Whether a vector is short (0), of medium length (1) or long (2)."""
    return sum(entries > limit for limit in LIMITS)


@dataclass(frozen=True)
class Costs:
    """The measured constants: of a message, of an addition, and of both ends of an allreduce.

    `cut` has the cost for one device to cut its vector into 1, 2, 3 and 4 chunks and to join them.
    """

    message: Lines
    addition: Lines
    cut: tuple[Lines, Lines, Lines, Lines]


@dataclass(frozen=True)
class Probe:
    """The seconds of a call that is no allreduce; constants are fitted to these.

    Two devices cut a vector into chunks and join them; in between, one vector goes to and fro.
    """

    entries: int
    chunks: int
    messages: int
    adds: bool
    seconds: float


@dataclass(frozen=True)
class Compared:
    """One allreduce as it was measured, and as it was predicted, if it has a schedule."""

    entries: int
    devices: int
    algorithm: str
    measured: float
    predicted: float | None


@dataclass(frozen=True)
class Measured:
    """One measurement: where it was made, the constants and all allreduces."""

    framework: str
    threads: int
    created: str
    machine: dict[str, str | int]
    versions: dict[str, str]
    costs: Costs
    compared: list[Compared]
