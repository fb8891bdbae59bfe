"""What DTensor moves between devices: read from the functions that it hands to TensorFlow."""

from collections.abc import Iterable
from math import prod

import tensorflow as tf
from tensorflow.python.eager import context

from common.base.errors import RunError
from common.parallel.ledger import Collective

COUNTED = "CollectiveReduceV2"
"""On CPUs DTensor gathers by it, too, as a sum of tensors that are zeros but for one's own part."""


def functions() -> set[str]:
    """The names of all functions that TensorFlow has."""
    return set(context.context().list_function_names())


def moved(names: Iterable[str]) -> list[Collective]:
    """What devices move in functions, if each is called once."""
    sizes = [size for name in names for size in collectives(name)]
    return [Collective("all-reduce", sum(sizes))] if sizes else []


def collectives(name: str) -> list[int]:
    """The bytes of a device's part in each collective. Raises RunError at one of another kind."""
    found = []
    for node in context.context().get_function_def(name).node_def:
        if node.op == COUNTED:
            (shape,) = node.attr["_output_shapes"].list.shape
            found.append(prod(d.size for d in shape.dim) * tf.as_dtype(node.attr["T"].type).size)
        elif node.op.startswith("Collective") and "Communicator" not in node.op:
            raise RunError(f"{node.op} is not counted: on CPUs DTensor has {COUNTED} alone")
    return found
