"""What DTensor moves between devices: read from the functions that it hands to TensorFlow."""

from collections.abc import Mapping
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


def moved(calls: Mapping[str, int]) -> list[Collective]:
    """What devices move in functions that are called so often, by kind."""
    return [Collective("all-reduce", sum(n * size(name) for name, n in calls.items()))]


def size(name: str) -> int:
    """The bytes that a device has of all collectives in a function.

    Raises RunError if one is of another kind.
    """
    found = 0
    for node in context.context().get_function_def(name).node_def:
        if node.op == COUNTED:
            (shape,) = node.attr["_output_shapes"].list.shape
            itemsize = tf.as_dtype(node.attr["T"].type).size
            found += prod(axis.size for axis in shape.dim) * itemsize
        elif node.op.startswith("Collective") and node.op != "CollectiveInitializeCommunicator":
            raise RunError(f"{node.op} is not counted: on CPUs DTensor has {COUNTED} alone")
    return found
