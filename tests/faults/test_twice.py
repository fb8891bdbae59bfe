"""The same command twice gives the same bits, on the CPU, on any number of devices."""

from pathlib import Path

import pytest
from figures import Figures
from killed_runs import Case, Runner, cases

from common.backends.frameworks import FRAMEWORKS

pytestmark = [pytest.mark.faults, pytest.mark.short("pytorch")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    framework = metafunc.config.getoption("--framework") or FRAMEWORKS[0]
    # What is killed is run twice already; the short form does not kill on 1 and 2 devices.
    found = [case for case in cases(framework) if case.devices < 3 and "sync" not in str(case)]
    if metafunc.config.getoption("--short"):
        found = found[:1]
    metafunc.parametrize("case", found, ids=str)


def test_a_command_gives_the_same_bits_twice(
    framework: str, case: Case, tmp_path: Path, figures: Figures
) -> None:
    figures("the same command again", chapter=case.chapter, devices=case.devices)
    runner = Runner(framework, case, tmp_path)
    for name in ("once", "again"):
        runner.finish(name)
    runner.require_same("once", "again")
