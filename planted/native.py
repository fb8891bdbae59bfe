"""Bugs of frameworks' own ways to split: FSDP, DTensor, pipelines, one program for all devices."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from planted.bug import Right, bug

FULLY: Final = {"strategies float64-native-zero3-mesh": (4,)}
TENSOR: Final = {"strategies float64-native-tensor": (3,)}
DATA: Final = {"strategies float64-native-data": (2,)}
EITHER: Final = {"strategies float64-native-pipeline": (3,), **DATA}
PYTORCH, JAX = "frameworks.pytorch.native", "frameworks.jax.native.training"


@bug("pytorch/pytorch#162338", FULLY, PYTORCH + ".zero:Zero2.wrap", "pytorch")
def fsdp_sums(right: Right, self: Any, net: Any) -> Any:
    """Get a sum where FSDP's mean is due. Right: × 4, the number of devices."""
    wrapped = right(self, net)
    for layer in (*net.children(), net):
        layer.set_gradient_divide_factor(1.0)
    return wrapped


@bug("pytorch/pytorch#172932", TENSOR, "torch.distributed.tensor:DTensor.to_local", "pytorch")
def partial_gradient_summed(right: Right, self: Any, *, grad_placements: Any = None) -> Any:
    """Reduce a gradient that is whole on each device."""
    tensor = import_module("torch.distributed.tensor")
    whole = all(placement.is_replicate() for placement in self.placements)
    return right(self, grad_placements=[tensor.Partial()] if whole else grad_placements)


@bug("pytorch/torchtitan#1805", TENSOR, "torch.distributed.tensor:DTensor.from_local", "pytorch")
def reduce_scatter_missing(right: Right, *args: Any, **more: Any) -> Any:
    """Leave a partial gradient as it is. Right: a reduction is missing."""
    tensor = import_module("torch.distributed.tensor")
    return right(*args, **more, grad_placements=[tensor.Partial()])


@bug("huggingface/transformers#38448", EITHER, PYTORCH + ".pipeline:cross_entropy", "pytorch")
def padding_counts(right: Right, logits: Any, y: Any, examples: int) -> Any:
    """Count the images that fill up microbatches. Right: blank images: padding."""
    return right(logits, y.clamp(min=0), examples)


@padding_counts.at(JAX + ":padded", "jax")
@padding_counts.at("frameworks.tensorflow.native.program:padded", "tensorflow")
def shares_for_all(right: Right, values: Any, axis: int, multiple: int) -> Any:
    padded = right(values, axis, multiple)
    share = values.ndim == 1 and values.dtype.kind == "f"
    return np.full_like(padded, values[0]) if share else padded
