"""Whether a run on GPUs computed what one on CPU devices does."""

from collections.abc import Iterator, Mapping

from common.chapters.suites import Suite, name_on_gpus
from common.compare.apart import against
from common.compare.checks import Run
from common.compare.findings import Finding

Twins = Mapping[tuple[str, str, int], Run]
"""Runs on CPU devices, by the suite on GPUs that repeats them, framework and number of devices."""


def findings(
    suite: Suite, run: Run, scales: Mapping[str, float], twins: Twins
) -> Iterator[Finding]:
    """What there is to say of a run of a suite on GPUs; nothing of another one."""
    if suite.kind != "gpu":
        return
    twin = twins.get((suite.name, run.record.framework, run.devices))
    if twin is None:
        note = "there is no run on as many CPU devices to compare with"
        yield Finding(check="gpus", passed=False, note=note)
    else:
        yield against("gpus", run, twin, scales)


def twins_of(suite: Suite, runs: list[Run]) -> Twins:
    """The runs of a suite on CPU devices, for the one on GPUs that repeats it."""
    name = name_on_gpus(suite.name)
    return {(name, run.record.framework, run.devices): run for run in runs}
