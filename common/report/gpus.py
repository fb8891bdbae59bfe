"""What `nox -s gpu` has shown of each framework, and the README's table of it."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.chapters.chapters import SPECS, SUITES
from common.compare.findings import Check
from common.compare.suite import Verdict
from common.records.record import Record, Strict
from common.records.store import read_json, read_record
from common.records.trust import distrust
from common.report.benchmark import Benchmark
from common.terminal.tables import markdown


def plain(text: str) -> str:
    """A text without what a page would take for more than text."""
    return re.sub(r"[^\w .,:()/+-]", "", text)


Plain = Annotated[str, AfterValidator(plain)]
"""What a page can take in, whoever has sent it."""


class Counted(Strict):
    """How many checks, or tests, have passed, and how many have not."""

    passed: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)

    def words(self, what: str) -> str:
        """Both in words; never that something has passed where there was nothing."""
        both = self.passed + self.failed
        if not both:
            return "not run"
        return f"**{self.failed} of {both} {what} failed**" if self.failed else f"{both} passed"


class OnGpus(Strict):
    """What was shown of one framework: on which `gpus`, and on how many of them at most.

    `devices` are the numbers of GPUs that its runs were on; it has none if its build does not serve
    these. `images_per_second` are of its chapters, by the number of GPUs.
    """

    date: Plain
    gpus: Plain
    driver: Plain
    versions: dict[Plain, Plain]
    devices: list[int]
    checks: Counted
    tests: Counted
    images_per_second: dict[Plain, dict[int, float]]

    def cells(self) -> list[str]:
        """What the README says of it."""
        if not self.devices and not self.checks.failed:
            return [f"it has no build for {self.gpus}", "", "", *("" for _ in SPECS)]
        counts = " and ".join(map(str, self.devices)) or "none"
        where = f"{counts} of {self.gpus}, driver {self.driver}, {self.date}"
        speeds = [
            " and ".join(f"{rate:,.0f}" for rate in self.images_per_second.get(name, {}).values())
            for name in SPECS
        ]
        counted = self.checks.words("checks"), self.tests.words("tests")
        return [where, *counted, *(each or "not run" for each in speeds)]


class Summary(Strict):
    """What was shown, by framework; what is not in it was not run."""

    frameworks: dict[str, OnGpus]

    def table(self) -> str:
        """A row for every framework."""
        speeds = [f"{spec.net}, images/s" for spec in SPECS.values()]
        headings = ["framework", "on GPUs", "checks of parity", "tests", *speeds]
        rows = [
            [name, *(known.cells() if (known := self.frameworks.get(name)) else not_run())]
            for name in FRAMEWORKS
        ]
        return "\n".join(markdown(headings, rows, range(len(headings))))


def not_run() -> list[str]:
    """The cells of a framework that nobody has run on a GPU."""
    return ["not run"] * (3 + len(SPECS))


def summary(folder: Path) -> Summary:
    """What a folder of `nox -s gpu` shows. Raises RequestError or RunError."""
    path = folder / "parity.json"
    if not path.exists():
        raise RequestError(f"there is no {path}: `nox -s gpu` leaves one")
    verdict = read_json(Verdict, path, "what a comparison leaves")
    found = [each for each in verdict.comparisons if each.suite.startswith("gpu-")]
    if not found:
        raise RunError(f"{path} compares nothing on GPUs: `nox -s gpu` does")
    bench = None
    if (path := folder / "bench.json").exists():
        bench = read_json(Benchmark, path, "a benchmark")
    records = {name: list(records_of(folder, name, verdict)) for name in FRAMEWORKS}
    machine = next((each.machine for some in records.values() for each in some), {})
    made = {}
    for name in FRAMEWORKS:
        checks = [check for each in found for check in each.checks if check.framework == name]
        if checks or any(name in each.on_cpus for each in found):
            own = records[name][0] if records[name] else None
            about = own.machine if own else machine
            made[name] = OnGpus(
                date=verdict.created[:10],
                gpus=str(about.get("gpus", "unknown")),
                driver=str(about.get("driver", "unknown")),
                versions=own.versions if own else {},
                devices=sorted({each.config.devices for each in records[name]}),
                checks=counted(checks),
                tests=tests(folder / f"{name}-tests.xml"),
                images_per_second=rates(bench, name) if bench else {},
            )
    return Summary(frameworks=made)


def records_of(folder: Path, framework: str, verdict: Verdict) -> Iterator[Record]:
    """The records of its runs on GPUs. Raises RunError if one is not what the verdict is on."""
    sound = {
        (check.suite, check.chapter, check.devices)
        for comparison in verdict.comparisons
        for check in comparison.checks
        if check.framework == framework and check.check == "record" and check.passed
    }
    for suite in (each for each in SUITES if each.kind == "gpu"):
        pattern = f"{framework}-{suite.chapter}-*dev.json"
        for path in sorted((folder / suite.folder).glob(pattern)):
            record = read_record(path)
            if (suite.name, suite.chapter, record.config.devices) not in sound:
                continue  # the comparison says what is wrong with it
            if record.config.device_kind != "gpu" or distrust(record):
                raise RunError(f"{path} is no record of a run on GPUs that went well")
            if record.started > verdict.created:
                raise RunError(f"{path} is of a run after the comparison: compare again")
            sound.remove((suite.name, suite.chapter, record.config.devices))
            yield record
    if missing := [each for each in sound if each[0].startswith("gpu-")]:
        raise RunError(f"the records of {framework} that were compared are gone: {missing[0]}")


def counted(checks: Sequence[Check]) -> Counted:
    """How many of the checks have passed."""
    passed = sum(each.passed for each in checks)
    return Counted(passed=passed, failed=len(checks) - passed)


def tests(path: Path) -> Counted:
    """What pytest's report says; a test that was skipped has not passed."""
    total = failed = 0
    with suppress(FileNotFoundError):
        try:
            for suite in ET.parse(path).getroot().iter("testsuite"):
                of: Mapping[str, str] = suite.attrib
                total += int(of["tests"])
                failed += sum(int(of[each]) for each in ("errors", "failures", "skipped"))
        except (ET.ParseError, KeyError, ValueError) as error:
            raise RunError(f"{path} is no report of pytest: {error}") from None
    return Counted(passed=total - failed, failed=failed)


def rates(bench: Benchmark, framework: str) -> dict[str, dict[int, float]]:
    """The images per second of its chapters, by the number of GPUs."""
    ours = [
        each
        for each in bench.samples
        if (each.framework, each.contender, each.kind) == (framework, "ours", "gpu")
    ]
    return {
        chapter: {
            each.devices: each.median("images_per_second")
            for each in ours
            if each.chapter == chapter
        }
        for chapter in dict.fromkeys(each.chapter for each in ours)
    }
