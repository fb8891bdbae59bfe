"""The OpenMP runtime that a framework loads has been told how long threads look for work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.base.waiting import LOOKS, OWN

ROOT = Path(__file__).parents[2]
LOAD = """
from contextlib import nullcontext
from common.backends import loading
loading.native_errors_held_back = nullcontext  # where the runtime says what it has read
loading.import_backend({framework!r}, "scratch", 2)
"""

pytestmark = pytest.mark.only("pytorch", "mxnet")


def run(*command: str, **variables: str) -> str:
    """What a command prints on standard error, with nothing said of waiting but `variables`."""
    environment = {k: v for k, v in os.environ.items() if k not in OWN} | variables
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.parametrize("own", ["", "7"])
def test_threads_look_for_work_for_a_moment_or_as_the_user_says(framework: str, own: str) -> None:
    variables = {"OMP_DISPLAY_ENV": "verbose", **({"GOMP_SPINCOUNT": own} if own else {})}
    said = run("-c", LOAD.format(framework=framework), **variables)
    found = {int(number) for number in re.findall(r"GOMP_SPINCOUNT = '(\d+)'", said)}
    assert found == {int(own) if own else 0 if framework == "mxnet" else LOOKS}
