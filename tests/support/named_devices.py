"""What chapters without a framework share: devices that are names, and a single process."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from common.backends.devices import ALONE, DeviceRequest, Devices, Process

PLACE: Final = "frameworks.pytorch.chapters"
"""The module that gives PyTorch's chapters, which need not be installed."""


def standing_in(chapter: Any) -> Any:
    """What may be in that module's place: either chapter is this one."""
    return SimpleNamespace(scratch=lambda: chapter, concise=lambda: chapter)


class NamedDevices:
    """The part of `common.backends.interface.Chapter` that is about processes and devices."""

    def devices(self, process: Process, request: DeviceRequest) -> Devices[str]:
        names = [f"cpu:{index}" for index in range(request.count or 2)]
        return Devices.of("cpu", names, process)

    def launch(
        self,
        worker: Callable[[Process], None],
        request: DeviceRequest,
        options: Any,
        process: Process = ALONE,
    ) -> None:
        worker(process)
