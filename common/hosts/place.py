"""Which process of a run this is, and where it meets the others."""

from dataclasses import dataclass, field

from common.backends.devices import Process


@dataclass(frozen=True)
class Place:
    """What a launcher has told a process.

    `launcher` in words, for messages and the record; empty if there is none, or one process alone.
    The first process listens at `coordinator`, a host and a port; None if there is one process.
    Where a launcher does not tell which of them share a host, each seems to be alone on its own.
    """

    launcher: str = ""
    process: Process = field(default_factory=Process)
    coordinator: tuple[str, int] | None = None


class NothingToDoError(Exception):
    """The work that a process has been started for is done by others. Exit status 0."""

    status = 0
