"""The few operations on tensors of any framework that bugs take."""

from importlib import import_module
from typing import Any

import numpy as np

from planted.bug import Right


def without(right: Right, tensor: Any, lost: slice) -> Any:
    """A tensor, of which some entries of the flat order are zeros."""
    kept = np.ones(tuple(tensor.shape))
    kept.reshape(-1)[lost] = 0
    place = import_module(f"frameworks.{right.framework}.primitives").place
    device = tensor.ctx if right.framework == "mxnet" else tensor.device
    dtype = str(tensor.dtype if right.framework != "tensorflow" else tensor.dtype.name)
    return tensor * place(kept.astype(dtype.removeprefix("torch.")), device)


def rolled(right: Right, vector: Any) -> Any:
    """A vector whose entries are one place farther on."""
    numpys = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax.numpy"}
    library = import_module(numpys.get(right.framework, "mxnet.numpy"))
    return library.roll(vector, 1, 0)


def turned(right: Right, matrix: Any) -> Any:
    """The numbers of a matrix in the order of its columns, in the shape of the matrix."""
    if right.framework == "tensorflow":
        tf = import_module("tensorflow")
        return tf.reshape(tf.transpose(matrix), matrix.shape)
    return matrix.T.reshape(matrix.shape)


def scaled(params: Any, factor: float) -> Any:
    """Tensors by their names, each times a factor."""
    return {name: factor * tensor for name, tensor in params.items()}
