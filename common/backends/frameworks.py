"""The frameworks: what of each is known before it is loaded, and what has started this process.

The engine of a framework reads the variables of launchers by itself. A run only asks whether it is
one of several processes.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from common.base.errors import RequestError, gist
from common.terminal.command import path

FRAMEWORKS: Final = ("pytorch", "tensorflow", "jax", "mxnet")

WRAPPERS: Final = {
    "pytorch": ("ddp", "fsdp", "dp"),
    "tensorflow": ("mirrored",),
    "jax": ("sharding", "shard_map", "zero3"),
    "mxnet": ("device", "local"),
}
"""Each framework's own ways to train on several devices; the first is the default."""

NO_NATIVE: Final[Mapping[str, Mapping[str, str]]] = {
    "pytorch": {
        "naive": "PyTorch's pipelines are --schedule gpipe and 1f1b",
        "zb1": "PyTorch's zero-bubble schedules have several stages a device: ask for 1f1b",
    },
    "tensorflow": {"pipeline": "DTensor has one program for all devices, without stages"},
    "jax": dict.fromkeys(
        ("1f1b", "naive", "zb1"),
        "JAX's gradient of a pipeline runs in GPipe's order: ask for --schedule gpipe",
    ),
}
"""The strategies and schedules that a framework does not support natively, and why not.

A framework that is not named has no native versions.
"""

IN_PROCESSES: Final = ("ddp", "fsdp")
"""The wrappers that take a process for each device, as PyTorch's native strategies do."""


def installed() -> list[str]:
    """The frameworks that this Python has; none is loaded."""
    return [name for name in FRAMEWORKS if find_spec(name.removeprefix("py"))]  # torch


def framework_and_python(text: str) -> tuple[str, str]:
    """The two sides of FRAMEWORK=PYTHON; without the latter, this Python."""
    framework, _, python = text.partition("=")
    python = str(path(python or sys.executable))
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
    worlds = [(each, *_world(each, environ, framework)) for each in LAUNCHERS]
    started = [world for world in worlds if world[2] > 1]
    if not started:
        return 0, 1
    what = f"{started[0][0].size} asks for {started[0][2]} processes"
    if chapter != "concise":
        raise RequestError(f"{what}, and only concise has several: unset it, or start one process")
    for launcher, rank, count in started:
        if framework in launcher.frameworks:
            return rank, count
    raise RequestError(f"{what}, but {ENGINES[framework]}")


def _world(launcher: Launcher, environ: Mapping[str, str], framework: str) -> tuple[int, int]:
    """Rank and world size by one launcher. Raises RequestError if the framework's are no such."""
    if (size := environ.get(launcher.size, "")) in ("", "1"):
        return 0, 1
    try:
        if launcher.size == "TF_CONFIG":  # the chief is rank 0, if there is one
            config = json.loads(size)
            jobs = [(job, config["cluster"].get(job, ())) for job in ("chief", "worker")]
            names = [(job, i) for job, hosts in jobs for i in range(len(hosts))]
            return names.index((config["task"]["type"], int(config["task"]["index"]))), len(names)
        rank, count = int(environ[launcher.rank]), int(size)
        if 0 <= rank < count:
            return rank, count
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    if launcher.size != "TF_CONFIG" and framework not in launcher.frameworks:
        return 0, int(size) if size.isdecimal() else 1
    what = f"{launcher.size}={size[:60]!r} is no world size with this process's rank below it"
    raise RequestError(f"{what}: set {launcher.rank} right, too, or unset {launcher.size}")


@dataclass(frozen=True)
class Environment:
    """The variables by which a framework computes otherwise, and what is done about each.

    In names, `*` stands for anything. A run sets what is `decided`, removes what is `removed`, and
    sets each of `defaults` that the user has not set. A record names `rounding` variables, the
    error line of a failed run also `breaking` ones. `fatal` ones may end the process without an
    exception, so another process runs `trial` first.
    """

    decided: Mapping[str, str] = field(default_factory=dict)
    removed: Sequence[str] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    rounding: Sequence[str] = ()
    breaking: Sequence[str] = ()
    fatal: Sequence[str] = ()
    trial: str = ""

    def apply(self) -> None:
        """Sets what every run decides, before the framework is loaded."""
        for name in matching(self.removed):
            del os.environ[name]
        for name, value in self.defaults.items():
            os.environ[name] = os.environ.get(name) or value
        os.environ.update(self.decided)

    def given(self, *names: str) -> dict[str, str]:
        """Variables with these names, or of `rounding`, that the user has set: name to value."""
        return {
            name: value
            for name in sorted(matching(names or self.rounding))
            if (value := os.environ[name]) and value != self.defaults.get(name)
        }

    def blame(self, framework: str) -> str:
        """What an error line adds if a variable is set that may be why a run failed."""
        listed = as_text(self.given(*self.rounding, *self.breaking, *self.fatal))
        return f"; {framework} reads {listed}, which is set in the environment" if listed else ""

    def require_harmless(self, framework: str) -> None:
        """Raises RequestError if a variable ends every process that loads the framework."""
        if not (fatal := self.fatal and self.given(*self.fatal)):
            return
        how: Any = {"capture_output": True, "text": True, "errors": "backslashreplace"}
        done = subprocess.run([sys.executable, "-c", self.trial], check=False, **how)
        if done.returncode:
            # Google's libraries say first when they say it, and where in their code.
            reason = re.sub(r"^[IWEF]\d{4} .*?\] ", "", gist(done.stderr))
            what = f"{framework} ends when it reads {as_text(fatal)} ({reason})"
            raise RequestError(f"{what}: set it right, or unset it")


def matching(names: Sequence[str]) -> list[str]:
    """The variables that are set and have one of these names, in which `*` is anything."""
    return [name for name in os.environ if any(fnmatchcase(name, known) for known in names)]


def as_text(variables: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in variables.items())
