"""The frameworks, and what of each is known before it is loaded."""

import argparse
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from common.terminal.values import path

FRAMEWORKS: Final = ("pytorch", "tensorflow", "jax", "mxnet")

WRAPPERS: Final = {
    "pytorch": ("ddp", "fsdp", "dp"),
    "tensorflow": ("mirrored",),
    "jax": ("sharding", "shard_map", "zero3"),
    "mxnet": ("device", "local"),
}
"""Each framework's own ways to train on several devices; the first is the default."""

NO_NATIVE: Final[Mapping[str, Mapping[str, str]]] = {
    "pytorch": {"naive": "PyTorch's pipelines are --schedule gpipe and 1f1b"},
    "tensorflow": {"pipeline": "DTensor has one program for all devices, without stages"},
    "jax": dict.fromkeys(
        ("1f1b", "naive"),
        "JAX's gradient of a pipeline runs in GPipe's order: ask for --schedule gpipe",
    ),
}
"""The strategies and schedules that a framework does not support natively, and why not.

A framework that is not named has no native versions.
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
