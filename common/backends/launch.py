"""How a chapter runs that needs one process, however many devices it has."""

from collections.abc import Callable

from common.backends.devices import ALONE, DeviceRequest, Process


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: object,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, whatever is asked for."""
    worker(process)
