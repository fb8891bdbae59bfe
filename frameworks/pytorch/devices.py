"""PyTorch's devices: GPUs, or virtual CPU devices that take turns on the same threads."""

from collections.abc import Mapping, Sequence

import torch

from common.base.errors import RequestError


def devices(count: int | None, kind: str, threads: int) -> list[torch.device]:
    """The `count` devices of `kind` ("auto", "cpu", "gpu"); None: every GPU, else 2 CPUs.

    Raises RequestError if there are fewer GPUs than asked for.
    """
    torch.set_num_threads(threads)
    exact_float32()
    gpus = torch.cuda.device_count()
    if kind == "cpu" or (kind == "auto" and not gpus):
        return [torch.device("cpu", index) for index in range(count or 2)]
    if not gpus or (count or gpus) > gpus:
        raise RequestError(
            f"PyTorch sees {gpus} GPUs here, not {count or 'any'}: "
            "ask for fewer --devices or for --device-kind cpu"
        )
    return [torch.device("cuda", index) for index in range(count or gpus)]


def exact_float32() -> None:
    """Forbids cuDNN's default, TF32, which keeps ten bits of the mantissa."""
    torch.backends.cudnn.allow_tf32 = False


def synchronize(replicas: Sequence[Mapping[str, torch.Tensor]]) -> None:
    """Returns once all queued work on the replicas is done."""
    for params in replicas:
        for device in {param.device for param in params.values()}:
            if device.type == "cuda":
                torch.cuda.synchronize(device)
