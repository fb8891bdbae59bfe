"""The processes of PyTorch's native strategies: one for each device."""

from collections.abc import Callable
from functools import partial

from common.backends.interface import DeviceRequest, Process
from common.base.errors import RequestError
from common.chapters.strategies import StrategiesOptions
from frameworks.pytorch.devices import require
from frameworks.pytorch.hosts import launch_processes


def launch(
    worker: Callable[[Process], None], request: DeviceRequest, options: StrategiesOptions
) -> None:
    """Calls `worker` in a process for each device.

    Raises RequestError if a pipeline has more stages than its order can serve.
    """
    require(request)
    stages = request.count // options.replicas
    too_few = options.microbatches < stages
    if options.strategy == "pipeline" and options.schedule == "1f1b" and too_few:
        raise RequestError(
            f"PyTorch's 1f1b takes as many --microbatches as there are stages, {stages}, or more: "
            "ask for them, or for --schedule gpipe"
        )
    # It loads FSDP, which takes a second.
    from frameworks.pytorch.wrappers import forgetting_layouts

    launch_processes(partial(forgetting_layouts, worker), request.count)
