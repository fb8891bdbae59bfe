"""MXNet's devices: GPUs, or CPU contexts that share the engine's threads."""

import os

import mxnet as mx
from mxnet import npx

from common.backends.interface import DeviceRequest, Devices, Process
from common.base.machine import native_errors_held_back


def devices(process: Process, request: DeviceRequest) -> Devices[mx.Context]:
    """The devices that are asked for. Raises RequestError if there are fewer GPUs."""
    npx.set_np()
    with native_errors_held_back():  # of a driver that is not there
        gpus = mx.context.num_gpus()
    request.require(gpus, "MXNet")
    kind, count = request.kind, request.count
    if kind == "cpu" and count > 1:
        # Read with the first operation. By default there are 4 places for the temporary memory of
        # a moment; at each they take turns, and so would the devices.
        os.environ.setdefault("MXNET_CPU_TEMP_COPY", "64")
    # Read with the first convolution. Else cuDNN's algorithms are tried out, and the fastest taken.
    os.environ["MXNET_ENFORCE_DETERMINISM"] = str(int(request.deterministic))
    os.environ["MXNET_CUDNN_AUTOTUNE_DEFAULT"] = str(int(not request.deterministic))
    device = mx.gpu if kind == "gpu" else mx.cpu
    return Devices(kind, [device(index) for index in range(count)])


def synchronize(replicas: object) -> None:
    """Returns once all queued work is done, on every device."""
    npx.waitall()
