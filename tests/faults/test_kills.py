"""A run that is killed at random moments and resumed ends with the same bits as one that is not."""

import random
import shutil
from pathlib import Path

import pytest
from killed_runs import Case, Runner, cases, first_cases

from common.backends.frameworks import FRAMEWORKS

pytestmark = pytest.mark.faults


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    framework = metafunc.config.getoption("--framework") or FRAMEWORKS[0]
    short = metafunc.config.getoption("--short")
    found = first_cases(framework) if short else list(cases(framework))
    metafunc.parametrize("case", found, ids=str)


def test_a_killed_run_ends_with_the_same_bits(
    framework: str, case: Case, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    runner = Runner(framework, case, tmp_path)
    life, training = runner.finish("whole")
    moments = random.Random(f"{framework} {case}")
    done = 0
    while done < pytestconfig.getoption("--kills"):
        # Most of so short a life goes by before it trains. The first kill comes later, so that all
        # others, and the end, have a checkpoint to resume from.
        later = not runner.newest("killed")
        if runner.kill("killed", moments.uniform(0, training if later else life), later=later):
            done += 1
        else:
            runner.require_same("whole", "killed")
            shutil.rmtree(tmp_path / "killed")
    left = runner.newest("killed")
    runner.finish("killed", "--resume")
    assert runner.record("killed").resumed[-1].step == left > 0
    runner.require_same("whole", "killed")
