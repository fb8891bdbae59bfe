"""The frameworks: what of each is known before it is loaded, and what has started this process.

The engine of a framework reads the variables of launchers by itself. A run only asks whether it is
one of several processes.
"""

import argparse
import json
import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from common.base.errors import RequestError
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


class Launcher(NamedTuple):
    """The frameworks whose engine reads the variables of a launcher, and those of its ranks."""

    frameworks: tuple[str, ...]
    size: str
    rank: str


LAUNCHERS: Final = (
    Launcher(("pytorch",), "WORLD_SIZE", "RANK"),
    Launcher(("tensorflow",), "TF_CONFIG", "TF_CONFIG"),
    Launcher(("jax",), "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
    Launcher((), "DMLC_NUM_WORKER", "DMLC_WORKER_ID"),
    Launcher(("jax",), "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    # A batch script has a rank, too, but no step: what it starts itself is alone.
    Launcher(("tensorflow", "jax"), "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
"""Inner ones first: torchrun starts several processes for each task of another launcher."""

ENGINES: Final = {
    "pytorch": "PyTorch's are started by torchrun",
    "tensorflow": "TensorFlow's are started by TF_CONFIG or srun",
    "jax": "JAX's are started by JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID, "
    "or by srun",
    "mxnet": "MXNet has one host: its servers are not maintained, and never notice a lost worker",
}
"""How each framework trains over several hosts."""


def launched(
    framework: str, chapter: str, environ: Mapping[str, str] = os.environ
) -> tuple[int, int]:
    """Rank and world size of this process; (0, 1) if it is alone. Raises RequestError."""
    for each in LAUNCHERS:
        if framework in each.frameworks and not _is_whole(each, environ):
            what = f"{each.size} and {each.rank} are no world size with a rank below it"
            raise RequestError(f"{what}: set both right, or unset {each.size}")
    started = [each for each in LAUNCHERS if _world(each, environ)[1] > 1]
    if not started:
        return 0, 1
    known = [each for each in started if framework in each.frameworks]
    what = f"{started[0].size} asks for {_world(started[0], environ)[1]} processes"
    if chapter != "concise":
        raise RequestError(f"{what}, and only concise has several: unset it, or start one process")
    if not known:
        raise RequestError(f"{what}, but {ENGINES[framework]}")
    return _world(known[0], environ)


def _is_whole(launcher: Launcher, environ: Mapping[str, str]) -> bool:
    """Whether a launcher's variables say both numbers, if it has set any world size."""
    count, rank = (environ.get(name, "") for name in (launcher.size, launcher.rank))
    if not count or launcher.size == "TF_CONFIG":
        return True
    return count.isdecimal() and (count == "1" or (rank.isdecimal() and int(rank) < int(count)))


def _world(launcher: Launcher, environ: Mapping[str, str]) -> tuple[int, int]:
    count = environ.get(launcher.size, "")
    if launcher.size == "TF_CONFIG" and count:
        return _tf_config(count)
    rank = environ.get(launcher.rank, "")
    return int(rank) if rank.isdecimal() else 0, int(count) if count.isdecimal() else 1


def _tf_config(text: str) -> tuple[int, int]:
    """The chief is rank 0, if there is one; then come the workers."""
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        names = [(job, i) for job in ("chief", "worker") for i in range(len(cluster.get(job, ())))]
        return names.index((task["type"], int(task["index"]))), len(names)
    except (ValueError, LookupError, TypeError, AttributeError):
        what = f"TF_CONFIG {text[:60]!r} is no cluster of workers with this process's task"
        raise RequestError(f"{what}: set it right, or unset it") from None
