"""PyTorch's devices: GPUs, or simulated devices that share the CPU's threads."""

import logging
import warnings

import torch

from common.backends.interface import DeviceRequest, Devices, Process
from common.parallel.shards import share_of


def devices(process: Process, request: DeviceRequest) -> Devices[torch.device]:
    """The devices that are asked for. Raises RequestError if there are fewer GPUs."""
    torch.set_num_threads(max(1, request.threads // process.local_count))
    # cuDNN's default, TF32, keeps ten bits of the mantissa.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = request.tf32
    # Else it tries its algorithms out, and takes the fastest for each shape.
    torch.backends.cudnn.deterministic = request.deterministic
    torch.backends.cudnn.benchmark = not request.deterministic
    require(request)
    kind, name = request.kind, "cuda" if request.kind == "gpu" else "cpu"
    found = [torch.device(name, index) for index in range(request.count)]
    local = list(share_of(found, process.local_rank, process.local_count))
    if kind == "gpu":
        torch.cuda.set_device(local[0])  # or every process would take memory on the first one
    return Devices(kind, local)


def require(request: DeviceRequest) -> None:
    """Raises RequestError if it is for more GPUs than PyTorch sees; logs why it can use none."""
    if request.kind == "cpu":
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        count = torch.cuda.device_count()
    for each in caught:  # of several lines each
        reason, _, _ = str(each.message).partition(". ")
        logging.getLogger(__name__).warning(f"PyTorch can use no GPU: {reason}")
    request.require(count, "PyTorch")


def synchronize(replicas: object) -> None:
    """Returns once all queued work is done, on every device that this process uses."""
    for index in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        if torch.cuda.memory_allocated(index):  # to ask another one would take memory there
            torch.cuda.synchronize(index)
