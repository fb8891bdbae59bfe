"""MXNet's devices: GPUs, or CPU contexts that share the engine's threads."""

import os
from collections.abc import Mapping, Sequence

import mxnet as mx
from mxnet import np, npx

from common.base.errors import RequestError


def devices(count: int | None, kind: str, threads: int) -> list[mx.Context]:
    """The `count` devices of `kind` ("auto", "cpu", "gpu"); None: every GPU, else 2 CPUs.

    `threads` has been set already: MXNet reads OMP_NUM_THREADS when it is loaded. Raises
    RequestError if there are fewer GPUs than asked for.
    """
    npx.set_np()
    gpus = mx.context.num_gpus()
    if kind == "cpu" or (kind == "auto" and not gpus):
        if count != 1:
            # Read with the first operation. By default there are 4 places for what operations need
            # for a moment; at each they take turns, and so would the devices.
            os.environ.setdefault("MXNET_CPU_TEMP_COPY", "64")
        return [mx.cpu(index) for index in range(count or 2)]
    if not gpus or (count or gpus) > gpus:
        raise RequestError(
            f"MXNet sees {gpus} GPUs here, not {count or 'any'}: "
            "ask for fewer --devices or for --device-kind cpu"
        )
    return [mx.gpu(index) for index in range(count or gpus)]


def synchronize(replicas: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Returns once all queued work is done, on every device."""
    npx.waitall()
