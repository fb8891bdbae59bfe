"""How a chapter runs that needs one process, however many devices it has."""

from collections.abc import Callable

from common.backends.devices import DeviceRequest, Process


def launch(worker: Callable[[Process], None], request: DeviceRequest, options: object) -> None:
    """Calls `worker` here, in the only process, whatever is asked for."""
    worker(Process())


def anyone(says_so: bool) -> bool:
    """Whether any process says so, of which there is one."""
    return says_so
