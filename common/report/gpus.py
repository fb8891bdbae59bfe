"""What `nox -s gpu` has shown of each framework, and the README's table of it."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import SPECS
from common.records.record import Strict
from common.terminal.tables import markdown


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
