"""The numerical parity checks: what of a run is compared, with what, and how strictly."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.criteria import CRITERIA
from common.compare.distances import compare
from common.compare.findings import Finding, farthest, nearest_to_failing
from common.compare.planned import suite_of
from common.compare.tolerances import Tolerance, Tolerances
from common.records.record import Record
from common.records.trace import expected_arrays, minibatch_size, traced_steps


@dataclass(frozen=True)
class Run:
    """A record that can be trusted, with its tensors and, as `losses`, the loss of every step."""

    record: Record
    arrays: Weights

    @property
    def name(self) -> str:
        """What its files are called: no other run of its folder has that name."""
        return self.record.name()

    @property
    def devices(self) -> int:
        """The number of devices it ran on."""
        return self.record.config.devices

    @property
    def shards(self) -> int | None:
        """What keeps its answer from being that of other runs: see `Config.shards`."""
        return self.record.config.shards()


NUMERICAL: Final = {
    "forward": "logits/before",
    "gradient": "gradients/",
    "trajectory": "losses",
    "weights": "weights/",
    "outcome": "logits/after",
}
"""What each numerical check compares: the arrays whose names start so."""

UNMEASURED: Final = ("trace/", "test/", "probe/")
"""Arrays that are a run's own, or bytes."""


def check_shapes(run: Run) -> tuple[str, str]:
    """The first array that has not the expected name, shape and type, and why not; or nothing."""
    expected = expected_arrays(run.record)
    found = {name: (array.shape, str(array.dtype)) for name, array in run.arrays.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            told = [
                f"{each[1]} {each[0]}" if each else "missing"
                for each in (found.get(name), expected.get(name))
            ]
            return name, f"{name} is {told[0]}, expected {told[1]}"
    return "", ""


def median(runs: Sequence[Run]) -> Weights:
    """The entry-wise median of the runs: one that is wrong cannot move it far, and stands out."""
    medians: Weights = {}
    shapes = {
        name: each
        for run in runs
        for name, (each, _) in expected_arrays(run.record).items()
        if not name.startswith(UNMEASURED)
    }
    for name, shape in shapes.items():
        sound = [
            run.arrays[name].astype(np.float64)
            for run in runs
            if name in run.arrays
            and run.arrays[name].shape == shape
            and np.isfinite(run.arrays[name]).all()
        ]
        if sound:
            medians[name] = np.median(sound, axis=0)
    return medians


def allowed(run: Run) -> Tolerances:
    """How far each quantity of a run may be off, by name; empty where its dtype has no limits."""
    criteria, dtype = CRITERIA[run.record.chapter], run.record.config.dtype
    found = criteria.tolerances.get(dtype, {})
    return {**found, **criteria.long.get(dtype, {})} if found and is_long(run) else found


def numerical_checks(run: Run) -> dict[str, tuple[str, Tolerance]]:
    """The prefix and tolerance of each numerical check that runs of one setting allow.

    Training makes more of rounding with every step, so long runs are compared with each other in
    their beginnings alone.
    """
    known, ends = allowed(run), ("weights", "outcome") if is_long(run) else ()
    named = NUMERICAL.items() if known else ()
    return {name: (prefix, known[name]) for name, prefix in named if name not in ends}


def beginning(run: Run) -> int:
    """The steps from the first on over which rounding stays rounding, in runs such as this one.

    In float32 that is known of the suites alone; else the first step is certain.
    """
    config = run.record.config
    known = config.dtype == "float64" or suite_of(config) is not None or not traced_steps(config)
    return CRITERIA[run.record.chapter].beginning if known else 1


def is_long(run: Run) -> bool:
    """Whether the run is so long that its steps have amplified rounding."""
    return len(run.record.losses) > beginning(run)


def head(run: Run, arrays: Mapping[str, Array]) -> Weights:
    """The arrays, with the losses of the run's beginning alone."""
    return {**arrays, "losses": arrays.get("losses", np.empty(0))[: beginning(run)]}


def against(check: str, run: Run, other: Run, scales: Mapping[str, float]) -> Finding:
    """How far two runs are apart that compute the same: what comes nearest to failing."""
    ours, theirs = head(run, run.arrays), head(run, other.arrays)
    return nearest_to_failing(
        farthest(check, name, compare(ours, theirs, prefix, scales), tolerance)
        for name, (prefix, tolerance) in numerical_checks(run).items()
    )


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


def curve(run: Run, losses: Array) -> Weights:
    """The mean loss of each epoch of a run (epochs,), of `losses` (steps,)."""
    ends = np.cumsum([epoch.steps for epoch in run.record.epochs])
    return {"losses by epoch": np.array([part.mean() for part in np.split(losses, ends[:-1])])}


def environment_of(runs: Sequence[Run]) -> list[str]:
    """Each variable that may change rounding, and the runs in which it was set, in words."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for name, value in run.record.environment.items():
            of_run = f"{run.record.framework} on {run.devices}"
            found.setdefault(f"{name}={value}", []).append(of_run)
    return [f"{variable} in {', '.join(where)}" for variable, where in found.items()]
