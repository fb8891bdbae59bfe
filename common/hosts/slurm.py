"""Slurm: what `srun` tells the tasks of a step.

A batch script has SLURM_PROCID and SLURM_NTASKS, too, but no step: what it starts itself is alone.
"""

import re
from itertools import product
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

MOST: Final = 100_000
"""Hosts in a list; more is a mistake."""

_ITEM: Final = r"(?:[^\[\],\s]|\[[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*\])+"


def started(environ: Environ) -> bool:
    """Whether srun has started this process."""
    step = environ.get(SIGN, "")
    return bool(step) and not (step.isdecimal() and int(step) >= SPECIAL)


def process(environ: Environ) -> Process:
    """Which task this is. Raises RequestError if the variables do not go together."""
    total = _first(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    rank, count = pair(environ, SIGN, ("SLURM_PROCID", total), "srun")
    name = _first(environ, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
    tasks = tasks_per_node(needed(environ, name, SIGN), name)
    if len(set(tasks)) > 1:
        raise RequestError(
            f"Slurm has put {count} tasks on {len(tasks)} nodes as {environ[name]}, but each node "
            "needs as many: give srun --ntasks-per-node, too"
        )
    local_rank = number(needed(environ, "SLURM_LOCALID", SIGN))
    if local_rank is None or local_rank >= tasks[0]:
        raise RequestError(
            f"SLURM_LOCALID {shown(environ['SLURM_LOCALID'])} is none of the {tasks[0]} tasks of a "
            f"node that {name} tells of: start it with srun, {IGNORE}"
        )
    if sum(tasks) != count:
        raise RequestError(
            f"{name} {shown(environ[name])} does not add up to {total} {count}: start it with "
            f"srun, {IGNORE}"
        )
    return Process(rank, count, local_rank, tasks[0])


def coordinator(environ: Environ) -> Address:
    """Where the first task listens: on the first node of the step, at a port of the step's own.

    Raises RequestError if the first task is elsewhere, or the variables do not say.
    """
    if environ.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        raise RequestError(
            "Slurm tells no task where the first one is if srun has --distribution=arbitrary: "
            "leave it out, or give --coordinator HOST:PORT"
        )
    name = _first(environ, "SLURM_STEP_NODELIST", "SLURM_NODELIST")
    first = expanded(needed(environ, name, SIGN), name)[0]
    job, step = (_number(environ, each) for each in ("SLURM_JOB_ID", SIGN))
    return first, free_port(job * APART + step)


def _first(environ: Environ, name: str, other: str) -> str:
    return name if environ.get(name) else other


def _number(environ: Environ, name: str) -> int:
    value = number(needed(environ, name, SIGN))
    if value is None:
        raise RequestError(f"{name} {shown(environ[name])} is no number: use srun, {IGNORE}")
    return value


def tasks_per_node(text: str, source: str) -> list[int]:
    """The tasks of each node: "2(x3),1" is 2, 2, 2, 1. Raises RequestError."""
    found: list[int] = []
    for item in text.split(","):
        parts = re.fullmatch(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?", item)
        tasks, nodes = (int(part or 1) for part in parts.groups()) if parts else (0, 0)
        if not tasks * nodes or len(found) + nodes > MOST:
            raise RequestError(f"{source} {shown(text)} is not like 2(x3),1: use srun, {IGNORE}")
        found += [tasks] * nodes
    return found


def expanded(text: str, source: str) -> list[str]:
    """The hosts of a list such as n[1-3,07],m2, in its order. Raises RequestError."""
    names: list[str] = []
    if re.fullmatch(f"{_ITEM}(?:,{_ITEM})*", text):
        for item in re.findall(_ITEM, text):
            parts = [_part(part) for part in re.findall(r"\[.*?\]|[^\[\]]+", item)]
            if not all(parts) or _size(parts) + len(names) > MOST:
                break
            names += map("".join, product(*parts))
        else:
            return names
    raise RequestError(
        f"{source} {shown(text)} is no list of hosts such as n[1-3]: use srun, {IGNORE}"
    )


def _size(parts: list[list[str]]) -> int:
    size = 1
    for part in parts:
        size *= len(part)
    return size


def _part(text: str) -> list[str]:
    """What stands in a place of a name: the text itself, or each number in brackets."""
    if not text.startswith("["):
        return [text]
    found: list[str] = []
    for item in text[1:-1].split(","):
        first, _, last = item.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not 0 < len(numbers) <= MOST:
            return []
        found += [f"{number:0{len(first)}}" for number in numbers]
    return found
