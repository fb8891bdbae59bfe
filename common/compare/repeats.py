"""Whether a run over hosts, or on GPUs, computed what the run that it repeats did."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from common.backends.frameworks import same_bits
from common.chapters.suites import Suite
from common.compare.checks import NUMERICAL, Run, head, numerical_checks
from common.compare.distances import compare
from common.compare.findings import Finding, farthest, nearest_to_failing


def against(check: str, run: Run, other: Run, scales: Mapping[str, float]) -> Finding:
    """How far two runs are apart that compute the same: what comes nearest to failing."""
    ours, theirs = head(run, run.arrays), head(run, other.arrays)
    return nearest_to_failing(
        farthest(check, name, compare(ours, theirs, prefix, scales), tolerance)
        for name, (prefix, tolerance) in numerical_checks(run).items()
    )


def repeat_checks(
    suite: Suite, run: Run, repeated: Run | None, scales: Mapping[str, float]
) -> Iterator[Finding]:
    """Whether a run over hosts or on GPUs did what the `repeated` one did; nothing of others."""
    hosts = suite.hosts.get(run.devices, 1)
    check, where = ("hosts", "one host") if hosts > 1 else ("gpus", "as many CPU devices")
    if hosts == 1 and suite.kind != "gpu":
        return
    if note := _elsewhere(run, hosts) if hosts > 1 else "":
        yield Finding(check=check, passed=False, note=note)
    elif repeated is None:
        note = f"there is no run on {where} to compare with"
        yield Finding(check=check, passed=False, note=note)
    elif hosts > 1 and same_bits(run.record.framework, run.record.chapter):
        yield _equal(run, repeated)
    else:
        yield against(check, run, repeated, scales if hosts == 1 else {})


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
