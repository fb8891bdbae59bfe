"""The processes of PyTorch's own ways to split: one for each device."""

from collections.abc import Callable
from functools import partial

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.errors import RequestError
from common.chapters.strategies import StrategiesOptions
from frameworks.pytorch.devices import settled
from frameworks.pytorch.launch import launch_processes
from frameworks.pytorch.wrappers import forgetting_layouts


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: StrategiesOptions,
    process: Process = ALONE,
) -> None:
    """Calls `worker` in a process for each device.

    Raises RequestError for an order of a pipeline that PyTorch does not have.
    """
    _, count = settled(request)
    if options.strategy == "pipeline":
        if options.schedule == "naive":
            raise RequestError("PyTorch's own pipelines are --schedule gpipe and 1f1b")
        stages = count // options.replicas
        if options.schedule == "1f1b" and (options.microbatches or 4) < stages:
            raise RequestError(
                f"PyTorch's 1f1b takes as many --microbatches as there are stages, {stages}, or "
                "more: ask for them, or for --schedule gpipe"
            )
    here = len(process.share_of(range(count)))
    launch_processes(partial(forgetting_layouts, worker), here, process)
