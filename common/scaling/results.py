"""What was measured and what was simulated, as `scaling.json` keeps it. Times are in seconds."""

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from common.base.errors import RequestError, RunError
from common.records.record import Strict
from common.records.store import read_json
from common.scaling.formulas import Link

SCHEMA: Final = 3

LIMITS: Final = (2**15, 2**20)
"""The most entries of a short vector, 131 kB, and of one of medium length, 4.2 MB."""


class Line(Strict):
    """What something takes: so much each time, in seconds, and so much for each entry."""

    fixed: float = Field(ge=0)
    per_entry: float = Field(ge=0)

    def __call__(self, entries: float) -> float:
        """The seconds of a vector of that many entries."""
        return self.fixed + self.per_entry * entries


class Lines(Strict):
    """A line for short vectors, for medium and for long ones.

    Frameworks call in more threads for what is not short, and no cache holds what is long.
    """

    short: Line
    medium: Line
    long: Line

    def __call__(self, entries: float) -> float:
        """The seconds of a vector of that many entries."""
        return self.pieces()[piece(entries)](entries)

    def pieces(self) -> tuple[Line, Line, Line]:
        """The lines, that of the short vectors first."""
        return self.short, self.medium, self.long


def piece(entries: float) -> int:
    """Whether a vector is short (0), of medium length (1) or long (2)."""
    return sum(entries > limit for limit in LIMITS)


class Costs(Strict):
    """The measured constants: of a message, of an addition, and of both ends of an allreduce.

    `cut` says what it takes one device to cut its vector into 1, 2, 3 and 4 chunks, and to join
    them in the end.
    """

    message: Lines
    addition: Lines
    cut: tuple[Lines, Lines, Lines, Lines]


class Probe(Strict):
    """What the constants come from: seconds of a call that is no allreduce, on two devices.

    Both cut a vector into chunks and join them; between that, one goes to and fro.
    """

    entries: int
    chunks: int
    messages: int
    adds: bool
    seconds: float


class Compared(Strict):
    """One allreduce as it was measured, and as it was predicted, if it has a schedule.

    Over hosts it is predicted twice: from what the busiest device does while the others do theirs,
    and, `in_turn`, as if they shared one processor, which does one thing after the other.
    """

    entries: int
    devices: int
    algorithm: str
    measured: float
    predicted: float | None
    in_turn: float | None = None

    def ratio(self) -> float | None:
        """What was predicted over what was measured."""
        return None if self.predicted is None else self.predicted / self.measured


class Trained(Strict):
    """A training step of LeNet over hosts; `computing` is the part that was measured by itself.

    Each gradient is summed by an allreduce of its own, and the loss is, too.
    """

    algorithm: str
    images: int
    computing: float
    measured: float
    predicted: float | None
    in_turn: float | None

    def ratio(self) -> float | None:
        """What was predicted over what was measured."""
        return None if self.predicted is None else self.predicted / self.measured


class Over(Strict):
    """The host of each process by rank, how many machines these are, and what joins them."""

    hosts: list[str]
    machines: int = Field(ge=1)
    engine: str
    transport: str
    steps: list[Trained]


class Measured(Strict):
    """Everything that was measured, and on what; rates in operations and bytes per second.

    `over` is there if it was measured between processes on several hosts.
    """

    framework: str
    threads: int
    created: str
    machine: dict[str, str | int]
    versions: dict[str, str]
    probes: list[Probe]
    costs: Costs
    compared: list[Compared]
    product_rate: float = Field(gt=0)
    copy_rate: float = Field(gt=0)
    over: Over | None = None


class Constant(Strict):
    """A constant of the simulated cluster, and where it comes from."""

    value: float = Field(gt=0)
    source: str


class Constants(Strict):
    """A link's latency (s) and bandwidth (bytes/s), and how fast a device adds and computes."""

    latency: Constant
    bandwidth: Constant
    addition: Constant
    rate: Constant

    def link(self) -> Link:
        """The same as seconds of a message, of a byte, and of a byte that is added."""
        return Link(self.latency.value, 1 / self.bandwidth.value, 1 / self.addition.value)


class Step(Strict):
    """One simulated training step: its allreduces alone, and the step without and with overlap."""

    net: str
    devices: int
    algorithm: str
    allreduce: float
    apart: float
    overlapped: float


class Scaling(Strict):
    """The whole file."""

    schema_version: Literal[3] = Field(default=SCHEMA, alias="schema")
    measured: Measured
    constants: Constants
    simulated: list[Step]


def read_scaling(path: Path) -> Scaling:
    """What an earlier run wrote. Raises RequestError that says what is wrong with the file."""
    try:
        return read_json(Scaling, path, f"a scaling.json of schema {SCHEMA}")
    except RunError as error:
        raise RequestError(str(error)) from None
