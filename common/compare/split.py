"""Whether a run that splits its net sent and kept just what its plan says."""

from collections.abc import Iterator
from dataclasses import asdict

from common.compare.checks import Run
from common.compare.findings import Finding
from common.records.trace import minibatch_size


def usage_check(run: Run) -> Iterator[Finding]:
    """Whether what its first step has counted is what the plan says: integers, equal or not."""
    record = run.record
    step = record.resumed[-1].step + 1 if record.resumed else 1
    expected = record.config.usage(minibatch_size(record.config, step))
    if expected is None:
        return
    note = "" if record.split else "it has counted nothing"
    if record.split:
        for found in (record.split.counted, record.split.predicted):
            pairs = zip(asdict(found).items(), asdict(expected).values(), strict=True)
            wrong = [f"{k} are {v}, by the plan {right}" for (k, v), right in pairs if v != right]
            note = note or "".join(wrong[:1])
    yield Finding(check="plan", passed=not note, where=note, note=note)
