"""Runs that a chapter's processes, started once, make one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from scratch_steps import MOST_DEVICES

from common.backends.interface import DeviceRequest, Devices, Process
from common.backends.loading import backend
from common.training.run import Run


@dataclass(frozen=True)
class Several:
    """Makes runs of one chapter, all on as many devices."""

    runs: Sequence[Run]

    def __call__(self, process: Process) -> None:
        config = self.runs[0].config
        chapter: Any = backend(config.framework, config.chapter)
        request = DeviceRequest(config.devices, "cpu", 1)
        if process.count == 1:
            # The tests' process keeps its first devices and threads: those of `all_devices`.
            request = DeviceRequest(MOST_DEVICES, "cpu", 2)
        found = chapter.devices(process, request)
        few = Devices("cpu", found.local[: config.devices])
        rest = {"trainer": chapter.trainer, "synchronize": chapter.synchronize}
        chosen = SimpleNamespace(devices=lambda *_: few, **rest)
        with patch("common.training.run.backend", lambda *_: chosen):
            for run in self.runs:
                run(process)

    def launch(self) -> None:
        config = self.runs[0].config
        launch = backend(config.framework, config.chapter).launch
        launch(self, DeviceRequest(config.devices, "cpu", 2), config.options)
