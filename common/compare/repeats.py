"""Whether a run over hosts, or on GPUs, computed what the run that it repeats did."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from common.backends.frameworks import same_bits
from common.chapters.suites import Suite
from common.compare.checks import NUMERICAL, Run, against
from common.compare.findings import Finding

Runs = Mapping[tuple[str, str, int], Run]
"""Runs by suite, framework and number of devices."""


def findings(suite: Suite, runs: Runs, run: Run, scales: Mapping[str, float]) -> Iterator[Finding]:
    """Whether a run over hosts or on GPUs did what one of `runs` did; nothing of any other run."""
    hosts = suite.hosts.get(run.devices, 1)
    repeated = runs.get((suite.repeats, run.record.framework, run.devices))
    if hosts > 1:
        yield _over_hosts(run, hosts, repeated)
    elif suite.kind == "gpu" and repeated:
        yield against("gpus", run, repeated, scales)
    elif suite.kind == "gpu":
        note = "there is no run on as many CPU devices to compare with"
        yield Finding(check="gpus", passed=False, note=note)


def _over_hosts(run: Run, hosts: int, single: Run | None) -> Finding:
    """Whether it was over so many, and computed what a single one did: to the bit, if promised."""
    note = _elsewhere(run, hosts)
    if note or single is None:
        note = note or "there is no run on one host to compare with"
        return Finding(check="hosts", passed=False, note=note)
    if same_bits(run.record.framework, run.record.chapter):
        return _equal(run, single)
    return against("hosts", run, single, {})


def _elsewhere(run: Run, hosts: int) -> str:
    """In what way a run was not over so many hosts; empty if it was.

    Where there are no hosts, processes on one take their place: one for each, or for each device.
    """
    names = _hosts(run)
    found = len(set(names))
    if found == hosts or (found == 1 and len(names) in (hosts, run.devices)):
        return ""
    processes = "1 process" if len(names) == 1 else f"{len(names)} processes"
    return f"it ran in {processes} on {found} of the {hosts} hosts that the suite asks for"


def on_one_host(suite: Suite, runs: Sequence[Run]) -> list[str]:
    """The frameworks of which some run should have been over several hosts, and was on one."""
    several = [run for run in runs if suite.hosts.get(run.devices, 1) > 1]
    return list(dict.fromkeys(r.record.framework for r in several if len(set(_hosts(r))) == 1))


def _hosts(run: Run) -> list[str]:
    """The host of each process."""
    cluster = run.record.cluster
    return cluster.hosts if cluster else [""]


def _equal(run: Run, single: Run) -> Finding:
    """Whether every number of both runs is the same, to the bit."""
    compared = [name for name in run.arrays if name.startswith(tuple(NUMERICAL.values()))]
    ours, theirs = (
        # -0.0 is 0.0: a process that passes zeros on adds them to what there is.
        {name: np.add(each.arrays[name], 0.0).tobytes() for name in compared if name in each.arrays}
        for each in (run, single)
    )
    other = [name for name in compared if ours[name] != theirs.get(name)]
    return Finding(
        check="hosts",
        passed=not other,
        array=other[0] if other else "",
        where=f"{other[0]}: other bits" if other else "",
        diverged=other,
    )
