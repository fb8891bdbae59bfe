"""The frameworks, and what of each is known before it is loaded."""

import argparse
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from common.parallel.strategies import STRATEGIES
from common.terminal.values import path

FRAMEWORKS: Final = ("pytorch", "tensorflow", "jax", "mxnet")

WRAPPERS: Final = {
    "pytorch": ("ddp", "fsdp", "dp"),
    "tensorflow": ("mirrored",),
    "jax": ("sharding", "shard_map", "zero3"),
    "mxnet": ("device", "local", "dist_sync"),
}
"""Each framework's own ways to train on several devices; the first is the default."""

SAME_BITS: Final = {
    "pytorch": ("scratch", "concise"),
    "tensorflow": ("scratch", "concise"),
    "jax": ("scratch",),  # XLA's compiler chooses the sums of `sharding`, and Gloo their order
    "mxnet": ("scratch", "concise"),
}
"""The chapters that give, over several hosts and by default, the same bits as on one host."""

_NO_SLICES = "MXNet cuts no weights, gradients or momentum into slices for devices"
_NO_ORDER = "MXNet has no orders of microbatches of its own: ask for --schedule naive"
_LACKING: Final[Mapping[str, Mapping[str, str]]] = {
    "pytorch": {"naive": "PyTorch's pipelines are --schedule gpipe and 1f1b"},
    "tensorflow": {"pipeline": "DTensor has one program for all devices, and no stages in it"},
    "jax": dict.fromkeys(
        ("1f1b", "naive"),
        "JAX's gradient of a pipeline goes back in GPipe's order: ask for --schedule gpipe",
    ),
    "mxnet": {
        **dict.fromkeys(("tensor", "zero1", "zero2", "zero3"), _NO_SLICES),
        **dict.fromkeys(("gpipe", "1f1b"), _NO_ORDER),
    },
}

NATIVE: Final = ("data", "pipeline", "tensor", "zero1", "zero2", "zero3")
"""The strategies that a framework may have means of its own for."""

NO_NATIVE: Final = {
    name: {
        **_LACKING.get(name, dict.fromkeys(NATIVE, "its backend has no native versions")),
        **{each: "no framework has it" for each in STRATEGIES if each not in NATIVE},
    }
    for name in FRAMEWORKS
}
"""The ways to split, and the orders of a pipeline, that a framework has no means of its own for.

And why: in words that a run is refused with, and that stand in tables.
"""

IN_PROCESSES: Final = ("ddp", "fsdp")
"""The wrappers that take a process for each device; all else takes one for all devices."""


def installed() -> list[str]:
    """The frameworks that this Python has; none is loaded."""
    return [name for name in FRAMEWORKS if find_spec(name.removeprefix("py"))]  # torch


def framework_and_python(text: str) -> tuple[str, str]:
    """The two sides of the flag FRAMEWORK=PYTHON."""
    framework, _, python = text.partition("=")
    python = str(path(python))
    if framework not in FRAMEWORKS or shutil.which(python) is None:
        raise argparse.ArgumentTypeError(f"{text!r} names no framework and its Python")
    return framework, python
