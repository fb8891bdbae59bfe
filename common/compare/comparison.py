"""The comparison: loaded runs and NumPy's steps in, the checks of each suite out.

It reads no file, and keeps nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from common.chapters.suites import Suite
from common.compare.checks import checks_of, steps
from common.compare.findings import Check, Comparison, Verdict
from common.compare.peers import LoadedRecord, LoadedSuite, Steps, references_of
from common.compare.recorded_steps import Recomputed, recompute_all
from common.compare.runs import RecordedRun, other_settings


@dataclass(frozen=True)
class SuiteResult:
    """A suite, and what its checks found."""

    loaded: LoadedSuite
    comparison: Comparison

    @property
    def suite(self) -> Suite:
        return self.loaded.suite

    def checks(self, entry: LoadedRecord) -> list[Check]:
        who = entry.framework, entry.devices
        checks = self.comparison.checks
        return [check for check in checks if (check.framework, check.devices) == who]


def recompute_steps(loaded: Sequence[LoadedSuite]) -> dict[RecordedRun, Recomputed | None]:
    """NumPy's steps of all runs that can be compared."""
    recomputed: dict[RecordedRun, Recomputed | None] = {}
    for each in loaded:
        recomputed |= recompute_all([run for run in each.runs if run.comparable])
    return recomputed


def compare(loaded: Sequence[LoadedSuite], recomputed: Steps) -> list[SuiteResult]:
    """The result of each suite; runs with a wrong step are no reference."""
    loaded = [replace(each, steps=recomputed) for each in loaded]
    related = {(each.suite.chapter, each.suite.name): each.runs for each in loaded}
    known = [(run, each) for each in loaded for run in each.runs if run in recomputed]
    wrong = [run for run, each in known if (check := steps(run, each)) and not check.passed]
    exact = references_of(filter(is_exact, chain(*related.values())), wrong)
    results = []
    for each in loaded:
        suite = each.suite
        rounded = references_of((run for run in each.runs if not is_exact(run)), wrong)
        peers = replace(
            each,
            references=rounded | exact,
            alone=[x for x in related.get((suite.chapter, suite.alone_in), ()) if x.devices == 1],
            repeated=related.get((suite.chapter, suite.repeats), ()),
        )
        results.append(compare_suite(peers))
    return results


def is_exact(run: RecordedRun) -> bool:
    return (run.record.config.dtype, run.record.config.device_kind) == ("float64", "cpu")


def compare_suite(loaded: LoadedSuite) -> SuiteResult:
    """The result of one suite."""
    runs = loaded.runs
    compared_with = [loaded.reference(run).name for run in runs if loaded.others(run)]
    if any(loaded.steps.get(run) for run in runs):
        compared_with.insert(0, "NumPy's step from each run's own weights")
    about = {"suite": name_of(loaded), "chapter": loaded.suite.chapter}
    checks = []
    for entry in loaded.found:
        whose = {**about, "framework": entry.framework, "devices": entry.devices}
        checks += [check.model_copy(update=whose) for check in checks_of(entry, loaded)]
    comparison = Comparison(
        **about,
        config=runs[0].record.config if runs else None,
        compared_with=" and ".join(dict.fromkeys(compared_with)) or "nothing",
        checks=checks,
        notes=variables_set(runs),
        lacking=dict(loaded.lacking),
    )
    return SuiteResult(loaded, comparison)


def name_of(loaded: LoadedSuite) -> str:
    """The suite's; in the folder where runs go by default, only if they are as it plans."""
    suite = loaded.suite
    configs = [run.record.config for run in loaded.runs if suite.folder == "."]
    other = any(other_settings(config, suite.settings, suite.kind) for config in configs)
    return "own" if other else suite.name


def variables_set(runs: Sequence[RecordedRun]) -> list[str]:
    """Each variable that may change rounding, and the runs that had it."""
    names: dict[str, list[str]] = {}
    for run in runs:
        for variable, value in run.record.environment.items():
            name = f"{run.record.framework} on {run.devices}"
            names.setdefault(f"{variable}={value}", []).append(name)
    return [f"{variable} in {', '.join(names[variable])}" for variable in names]


def verdict_on(
    results: Sequence[SuiteResult],
    not_run: Sequence[str] = (),
    ignored: Sequence[str] = (),
    created: str = "",
) -> Verdict:
    comparisons = [result.comparison for result in results]
    checks = [check for comparison in comparisons for check in comparison.checks]
    return Verdict(
        passed=bool(checks) and all(check.passed for check in checks),
        created=created,
        comparisons=comparisons,
        not_run=list(not_run),
        ignored=list(ignored),
    )
