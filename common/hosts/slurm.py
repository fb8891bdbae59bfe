"""Slurm: what `srun` tells the tasks of a step.

A batch script has SLURM_PROCID and SLURM_NTASKS, too, but no step: what it starts itself is alone.
"""

import re
from typing import Final

from common.backends.devices import Process
from common.base.errors import RequestError
from common.hosts.variables import IGNORE, Address, Environ, free_port, needed, number, pair, shown

NAME: Final = "Slurm"
SIGN: Final = "SLURM_STEP_ID"

SPECIAL: Final = 4_294_967_000
"""Steps from here on are no steps of tasks: a batch script, an interactive shell."""

APART: Final = 101
"""Between the ports of a job and those of the next one: more steps than run at once. It has no
divisor with the number of ports in common, so every port is somebody's."""


def started(environ: Environ) -> bool:
    """Whether srun has started this process."""
    step = environ.get(SIGN, "")
    return bool(step) and not (step.isdecimal() and int(step) >= SPECIAL)


def process(environ: Environ) -> Process:
    """Which task this is. Raises RequestError if the variables do not go together."""
    rank, count = pair(environ, SIGN, ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), "srun")
    name = "SLURM_STEP_TASKS_PER_NODE"
    told = needed(environ, name, SIGN)
    alike = re.fullmatch(r"([0-9]{1,6})(\(x[0-9]{1,6}\))?", told)  # else like 2(x3),1
    if not alike:
        raise RequestError(
            f"Slurm has put {count} tasks on its nodes as {shown(told)}, but each node needs as "
            "many: give srun --ntasks-per-node, too"
        )
    local_rank, local_count = number(environ.get("SLURM_LOCALID")), int(alike[1])
    if local_rank is None or local_rank >= local_count or count % local_count:
        raise RequestError(
            f"SLURM_LOCALID {shown(environ.get('SLURM_LOCALID'))} of {name} {shown(told)} is no "
            f"task of {count} that srun would start: start it with srun, {IGNORE}"
        )
    return Process(rank, count, local_rank, local_count)


def coordinator(environ: Environ) -> Address:
    """Where the first task listens: on the first node of the step, at a port of the step's own.

    Raises RequestError if the first task is elsewhere, or the variables do not say.
    """
    if environ.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        raise RequestError(
            "Slurm tells no task where the first one is if srun has --distribution=arbitrary: "
            "leave it out, or give --coordinator HOST:PORT"
        )
    name = "SLURM_STEP_NODELIST"
    host = first_of(needed(environ, name, SIGN), name)
    job, step = (_number(environ, each) for each in ("SLURM_JOB_ID", SIGN))
    return host, free_port(job * APART + step)


def _number(environ: Environ, name: str) -> int:
    value = number(needed(environ, name, SIGN))
    if value is None:
        raise RequestError(f"{name} {shown(environ[name])} is not a number: use srun, {IGNORE}")
    return value


def first_of(text: str, source: str) -> str:
    """The first host of a list such as n[1-3,07],m2. Raises RequestError."""
    found = re.match(r"((?:[^\[\],\s]|\[[0-9][0-9,-]*\])+)(?:,|$)", text)
    if not found:
        raise RequestError(
            f"{source} {shown(text)} is not a list of hosts such as n[1-3]: use srun, {IGNORE}"
        )
    return re.sub(r"\[([0-9]+)[0-9,-]*\]", r"\1", found[1])
