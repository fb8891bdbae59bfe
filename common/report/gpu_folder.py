"""What a folder of `nox -s gpu` shows: its verdict, records, tests and benchmark agree."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.base.files import require_regular
from common.chapters.chapters import SPECS, SUITES
from common.compare.findings import Check
from common.compare.suite import Verdict
from common.records.record import Record, record_name
from common.records.store import read_json, read_record
from common.records.trust import distrust
from common.report.benchmark import Benchmark
from common.report.gpus import Counted, OnGpus, Summary

Machine = tuple[str, str]
"""Its GPUs, and NVIDIA's driver."""

UNKNOWN: Final[Machine] = ("unknown GPUs", "unknown")


def summary(folder: Path) -> Summary:
    """What a folder of `nox -s gpu` shows. Raises RequestError or RunError."""
    verdict = read_verdict(folder / "parity.json")
    records = {name: list(records_of(folder, name, verdict)) for name in FRAMEWORKS}
    machine = one_machine([each for some in records.values() for each in some])
    bench = benchmark(folder / "bench.json", machine)
    gpus, driver = machine or (bench and _machine(bench.machine)) or UNKNOWN
    made = {}
    for name in FRAMEWORKS:
        checks = [
            check
            for comparison in verdict.comparisons
            for check in comparison.checks
            if check.framework == name and comparison.suite.startswith("gpu-")
        ]
        if checks or any(name in each.on_cpus for each in verdict.comparisons):
            own = records[name]
            made[name] = OnGpus(
                date=verdict.created[:10],
                gpus=gpus,
                driver=driver,
                versions=own[0].versions if own else {},
                source_sha256=own[0].source_sha256 if own else "",
                devices=sorted({each.config.devices for each in own}),
                checks=counted(checks),
                tests=tests(folder / f"{name}-tests.xml"),
                images_per_second=rates(bench, name) if bench else {},
            )
    return Summary(frameworks=made)


def read_verdict(path: Path) -> Verdict:
    """The verdict on all suites on GPUs. Raises RequestError if there is none, or RunError."""
    if not path.exists():
        raise RequestError(f"there is no {path}: `nox -s gpu` leaves one")
    verdict = read_json(Verdict, path, "what a comparison leaves")
    found = {(each.suite, each.chapter) for each in verdict.comparisons}
    for suite in SUITES:
        if suite.kind == "gpu" and (suite.name, suite.chapter) not in found:
            missing = f"{suite.chapter}, {suite.name}"
            raise RunError(f"{path} compares no runs of {missing}: `nox -s gpu` compares all")
    return verdict


def records_of(folder: Path, framework: str, verdict: Verdict) -> Iterator[Record]:
    """The records of its runs on GPUs. Raises RunError if one is not what the verdict is on."""
    suites = {(each.name, each.chapter): each for each in SUITES if each.kind == "gpu"}
    for comparison in verdict.comparisons:
        suite = suites.get((comparison.suite, comparison.chapter))
        if suite is None:
            continue
        for check in comparison.checks:
            if check.framework == framework and check.check == "record" and check.passed:
                way = SPECS[suite.chapter].way(suite.settings)
                name = record_name(framework, suite.chapter, check.devices, way)
                path = folder / suite.folder / name
                record = read_record(path)
                whose = record.framework, record.chapter, record.config.devices
                expected = framework, comparison.chapter, check.devices
                kind = record.config.device_kind
                if whose != expected or kind != "gpu" or distrust(record):
                    raise RunError(f"{path} is not the record of its run on GPUs")
                if record.started > verdict.created:
                    raise RunError(f"{path} is of a run after the comparison: compare again")
                yield record


def one_machine(records: Sequence[Record]) -> Machine | None:
    """That of all records, if there are any. Raises RunError if they are of several."""
    found = {_machine(each.machine) for each in records}
    if len(found) > 1:
        raise RunError(f"the records are of several machines: {sorted(found)}")
    return found.pop() if found else None


def _machine(machine: dict[str, Any]) -> Machine:
    return str(machine.get("gpus", UNKNOWN[0])), str(machine.get("driver", UNKNOWN[1]))


def counted(checks: Sequence[Check]) -> Counted:
    """How many of the checks have passed."""
    passed = sum(each.passed for each in checks)
    return Counted(passed=passed, failed=len(checks) - passed)


def tests(path: Path) -> Counted | None:
    """What pytest's report says, if there is one; a test that was skipped has not passed."""
    if not path.exists():
        return None
    try:
        require_regular(path)
        suites = [each.attrib for each in ET.parse(path).getroot().iter("testsuite")]
        total = sum(int(of["tests"]) for of in suites)
        wrong = sum(int(of[x]) for of in suites for x in ("errors", "failures", "skipped"))
    except (OSError, LookupError, ValueError, ET.ParseError) as error:
        raise RunError(f"{path} is no report of pytest: {error}") from None
    if not suites:
        raise RunError(f"{path} is no report of pytest: it has no testsuite")
    failed = min(wrong, total)  # a test may fail, and have an error in its end
    return Counted(passed=total - failed, failed=failed)


def benchmark(path: Path, machine: Machine | None) -> Benchmark | None:
    """What was timed, if anything. Raises RunError if that was on another machine."""
    if not path.exists():
        return None
    found = read_json(Benchmark, path, "a benchmark")
    if machine and _machine(found.machine) != machine:
        raise RunError(f"{path} is of another machine than the records")
    return found


def rates(bench: Benchmark, framework: str) -> dict[str, dict[int, float]]:
    """The images per second of its chapters, by the number of GPUs; 0 where that failed."""
    found: dict[str, dict[int, float]] = {}
    for each in bench.samples:
        if (each.framework, each.contender, each.kind) == (framework, "ours", "gpu"):
            rate = each.median("images_per_second")
            found.setdefault(each.chapter, {})[each.devices] = rate
    for key in bench.failed:
        if failed := re.fullmatch(rf"{framework} (\w+) ours (\d+) gpu", key):
            found.setdefault(failed[1], {})[int(failed[2])] = 0
    return found
