"""The figures of tests of faults: each fault that was made counts, by its kind."""

import json
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from common.base.machine import describe_machine, now

FAILED = pytest.StashKey[bool]()
"""Whether a test has failed."""


class Figures:
    """The faults that a test has made."""

    def __init__(self) -> None:
        """There are none yet."""
        self.lines: list[dict[str, Any]] = []

    def __call__(self, fault: str, number: int = 1, **where: str | float) -> None:
        """So many faults of a kind are made now; if the test fails, they count as lost."""
        self.lines += [{"fault": fault, "number": number, **where}] if number else []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers that a test has failed."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[Figures]:
    """Counts the faults that a test makes, into the file of --figures."""
    found, path = Figures(), request.config.getoption("--figures")
    yield found
    if path is None:
        return
    failed, machine = request.node.stash.get(FAILED, False), describe_machine()
    shared = {
        "framework": request.config.getoption("--framework") or "",
        "date": now()[:10],
        "machine": f"{machine['processor']}, {machine['cores']} cores",
    }
    made = found.lines or ([{"fault": request.node.name, "number": 1}] if failed else [])
    # A test may be in another folder by now.
    with (request.config.invocation_params.dir / path).open("a", encoding="utf-8") as file:
        for line in made:
            lost = line["number"] if failed else 0
            file.write(f"{json.dumps({**line, **shared, 'lost': lost})}\n")
