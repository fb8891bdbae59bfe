"""PyTorch's devices: GPUs, or virtual CPU devices that take turns on the same threads."""

import torch

from common.backends.devices import DeviceRequest, Devices, Process


def devices(process: Process, request: DeviceRequest) -> Devices[torch.device]:
    """The devices that are asked for. Raises RequestError if there are fewer GPUs."""
    torch.set_num_threads(max(1, request.threads // process.local_count))
    # cuDNN's default, TF32, keeps ten bits of the mantissa.
    torch.backends.cudnn.allow_tf32 = False
    kind, count = request.settled(torch.cuda.device_count(), "PyTorch")
    name = "cuda" if kind == "gpu" else "cpu"
    return Devices.of(kind, [torch.device(name, index) for index in range(count)], process)


def synchronize(replicas: object) -> None:
    """Returns once all queued work is done, on every device that this process uses."""
    for index in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        if torch.cuda.memory_allocated(index):  # to ask another one would take memory there
            torch.cuda.synchronize(index)
