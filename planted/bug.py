"""A planted bug: what people did, where that is told, the runs that show it, what it replaces.

And the few operations on tensors of any framework that bugs take.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from common.backends.frameworks import FRAMEWORKS


@dataclass
class Right:
    """What a bug replaces, and the run in which it does; `share` is a number between two calls."""

    function: Any
    framework: str
    devices: int
    batch_size: int
    calls: int = 0
    share: Any = None

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self.function(*args, **more)


Runs = Mapping[str, Sequence[int]]
"""Numbers of devices by chapter and suite: "scratch float64"."""
Wrong = Callable[..., Any]
"""Takes the place of a function; gets it as a `Right`, and then its arguments."""


@dataclass(frozen=True)
class Bug:
    """What people did, in `words`, and the public `source` that tells of it.

    A hint with the words in `right` is right. `runs` show the bug. `wrong` has, by framework,
    places and what is put there.
    """

    name: str
    words: str
    source: str
    right: str = ""
    runs: Runs = field(default_factory=dict)
    wrong: dict[str, list[tuple[str, Wrong]]] = field(default_factory=dict)

    def at(self, place: str, *frameworks: str) -> Callable[[Wrong], Wrong]:
        """A decorator of what takes a place, "module:function" or "module:Class.function"."""

        def plant(wrong: Wrong) -> Wrong:
            for framework in frameworks or FRAMEWORKS:
                self.wrong.setdefault(framework, []).append((place.format(framework), wrong))
            return wrong

        return plant

    @contextmanager
    def planted(self, *run: Any) -> Iterator[None]:
        """A context in which the bug is there: `run` has framework, devices, examples of a step."""
        with ExitStack() as stack:
            for place, wrong in self.wrong.get(run[0], ()):
                module, _, path = place.partition(":")
                *owners, name = path.split(".")
                target: Any = reduce(getattr, owners, import_module(module))
                right = Right(getattr(target, name), *run)
                new = replacement(right, wrong) if callable(right.function) else wrong(right)
                stack.enter_context(patch.object(target, name, new))
            yield


def replacement(right: Right, wrong: Wrong) -> Callable[..., Any]:
    """The wrong function; it does not wrap the right one, which TensorFlow would trace instead."""

    def planted(*args: Any, **more: Any) -> Any:
        right.calls += 1
        return wrong(right, *args, **more)

    return planted


PLANTS: Final[list[Bug]] = []
"""All bugs, in the order of their definitions."""


def bug(source: str, runs: Runs, place: str, *frameworks: str) -> Callable[[Wrong], Bug]:
    """A decorator that makes a bug: its name is the function's, its words are in the docstring.

    The function takes the place of another one, in these frameworks or in all.
    """

    def make(wrong: Wrong) -> Bug:
        words, _, right = (wrong.__doc__ or "").rstrip(".").partition(". Right: ")
        plant = Bug(wrong.__name__.replace("_", " "), words, source, right, runs)
        plant.at(place, *frameworks)(wrong)
        PLANTS.append(plant)
        return plant

    return make


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
