"""Work of tests in the processes that a chapter starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file
from scratch_steps import MOST_DEVICES

from common.backends.interface import DeviceRequest, Process
from common.backends.loading import backend
from common.base.arrays import Weights
from common.models.weights_file import save_weights

Work = Callable[[Any, Sequence[Any], Any], Weights]
"""Computes arrays with a chapter, devices and options."""


@dataclass(frozen=True)
class Worker:
    """Does the work of each case, by name, and saves its arrays."""

    framework: str
    chapter: str
    devices: int
    cases: Mapping[str, tuple[Work, Any]]
    folder: Path

    def __call__(self, process: Process) -> None:
        chapter = backend(self.framework, self.chapter)
        # The tests' process keeps its first devices and threads: those of `all_devices`.
        count, threads = (self.devices, 1) if process.count > 1 else (MOST_DEVICES, 2)
        local = chapter.devices(process, DeviceRequest(count, "cpu", threads)).local
        for name, (work, options) in self.cases.items():
            arrays = work(chapter, local[: self.devices], options)
            if process.rank == 0:
                save_weights(self.folder / f"{name}.safetensors", arrays)

    def run(self) -> dict[str, Weights]:
        """Launches the processes once for all cases."""
        *_, (_, options) = self.cases.values()
        request = DeviceRequest(self.devices, "cpu", 2)
        backend(self.framework, self.chapter).launch(self, request, options)
        return {name: load_file(self.folder / f"{name}.safetensors") for name in self.cases}
