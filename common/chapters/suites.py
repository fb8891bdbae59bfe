"""The suites of runs that are compared. Only the standard library, as for the plan of runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

Settings = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Suite:
    """Runs that must reach the same result: one for each framework and number of devices.

    Plain `nox` runs them on `devices`, `nox -s grid` also on `more_devices`. All devices are of
    one `kind`, "cpu" or "gpu". Runs on GPUs must give the numbers of the suite that theirs
    `repeats`, and runs on several devices those on one device, here or in the suite `alone_in`.
    With `checkpoint_every` among its settings, a run is resumed from its first checkpoint; if the
    suite `repeats` another one on CPUs, it must have the bits of that. `lacking` says why a
    framework has no such runs.
    """

    chapter: str
    name: str
    folder: str
    devices: tuple[int, ...]
    more_devices: tuple[int, ...]
    settings: Settings
    kind: str = "cpu"
    repeats: str = ""
    alone_in: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)

    def counts(self, *, more_devices: bool = False, gpus: int = 0) -> tuple[int, ...]:
        """The numbers of devices that a session runs, on GPUs at most so many."""
        counts = (*self.devices, *(self.more_devices if more_devices else ()))
        return tuple(k for k in counts if k <= gpus) if self.kind == "gpu" else counts

    def given(self, devices: int, results: Path) -> dict[str, Any]:
        where = {"devices": devices, "device_kind": self.kind, "threads": 1}
        return {**where, "out": results / self.folder, **self.settings}


def on_gpus(suites: Iterable[Suite]) -> list[Suite]:
    """The same runs on GPUs, which must give the same numbers."""
    return [
        replace(
            each,
            name=f"gpu-{each.name}",
            folder=f"gpu/{each.folder}",
            settings={**each.settings, "deterministic": True},
            kind="gpu",
            repeats=each.name,
            alone_in=each.alone_in and f"gpu-{each.alone_in}",
        )
        for each in suites
        if not each.repeats
    ]
