"""What `nox -s gpu` has shown of each framework: read from the folder it left, and as a table."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.base.files import require_regular
from common.chapters.chapters import SPECS, SUITES
from common.compare.findings import Check
from common.compare.suite import Verdict
from common.records.record import Record, Strict, record_name
from common.records.store import read_json, read_record
from common.records.trust import distrust
from common.report.benchmark import Benchmark
from common.terminal.tables import markdown

Machine = tuple[str, str]
"""Its GPUs, and NVIDIA's driver."""

UNKNOWN: Final[Machine] = ("unknown GPUs", "unknown")


def plain(text: str) -> str:
    """A text without what a page would take for more than text."""
    return re.sub(r"[^\w .,()/+-]", "", text)[:80]


Plain = Annotated[str, AfterValidator(plain)]
"""What a page can take in, whoever has sent it."""

NOT_RUN = ["not run"] * (3 + len(SPECS))
"""The cells of a framework that nobody has run on a GPU."""


class Counted(Strict):
    """How many checks, or tests, have passed, and how many have not."""

    passed: int = Field(ge=0)
    failed: int = Field(ge=0)

    def words(self, what: str) -> str:
        """Both in words; nothing has passed where there is nothing."""
        both = self.passed + self.failed
        if not both:
            return "**none ran**"
        return f"**{self.failed} of {both} {what} failed**" if self.failed else f"{both} passed"


class OnGpus(Strict):
    """What was shown of one framework, where there were these `gpus`.

    `devices` are the numbers of GPUs that its runs were on; it has none if it can use none of them.
    `tests` is None if they left no report. `images_per_second` has its chapters' rates by the
    number of GPUs, 0 where the benchmark failed. `source_sha256` is that of the code.
    """

    date: Plain
    gpus: Plain
    driver: Plain
    versions: dict[Plain, Plain]
    source_sha256: Plain
    devices: list[int]
    checks: Counted
    tests: Counted | None
    images_per_second: dict[Plain, dict[int, float]]

    def was_run(self) -> bool:
        """Whether it was tried on GPUs, however that ended."""
        return bool(self.devices or self.checks.failed)

    def cells(self) -> list[str]:
        """What the README says of it."""
        if not self.was_run():
            return [f"it can use none of {self.gpus} with driver {self.driver}", *NOT_RUN[1:]]
        counts = " and ".join(map(str, self.devices)) or "none"
        where = f"{counts} of {self.gpus}, driver {self.driver}, {self.date}"
        tests = self.tests.words("tests") if self.tests else "**no report**"
        return [where, self.checks.words("checks"), tests, *map(self._rates, SPECS)]

    def _rates(self, chapter: str) -> str:
        rates = self.images_per_second.get(chapter, {})
        told = [
            f"{rate:,.0f} on {k}" if rate else f"**failed** on {k}"
            for k, rate in sorted(rates.items())
        ]
        return ", ".join(told) or "**no figures**"


class Summary(Strict):
    """What was shown, by framework; what is not in it was not run."""

    frameworks: dict[str, OnGpus]

    def table(self) -> str:
        """A row for every framework."""
        speeds = [f"{spec.net}, images/s" for spec in SPECS.values()]
        headings = ["framework", "on GPUs", "checks of parity", "tests", *speeds]
        rows = [
            [name, *(known.cells() if (known := self.frameworks.get(name)) else NOT_RUN)]
            for name in FRAMEWORKS
        ]
        return "\n".join(markdown(headings, rows, range(len(headings))))


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
            runs = records[name]
            made[name] = OnGpus(
                date=verdict.created[:10],
                gpus=gpus,
                driver=driver,
                versions=runs[0].versions if runs else {},
                source_sha256=runs[0].source_sha256 if runs else "",
                devices=sorted({each.config.devices for each in runs}),
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
