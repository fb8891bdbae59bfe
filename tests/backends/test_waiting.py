"""The OpenMP runtime of a framework knows how long threads look for work."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.base.tuning import BY_USER, SPIN_COUNT

ROOT = Path(__file__).parents[2]
LOAD = """
from contextlib import nullcontext
from common.backends import loading
loading.native_errors_held_back = nullcontext  # where the runtime says what it has read
loading.import_backend({framework!r}, "scratch", 2)
"""

pytestmark = pytest.mark.only("pytorch", "mxnet")


@pytest.mark.parametrize("own", ["", "7"])
def test_threads_look_for_work_for_a_moment_or_as_the_user_says(framework: str, own: str) -> None:
    variables = {"OMP_DISPLAY_ENV": "verbose", **({"GOMP_SPINCOUNT": own} if own else {})}
    environment = {k: v for k, v in os.environ.items() if k not in BY_USER} | variables
    command = [sys.executable, "-c", LOAD.format(framework=framework)]
    options: Any = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    said = subprocess.run(command, check=True, **options).stderr
    found = {int(number) for number in re.findall(r"GOMP_SPINCOUNT = '(\d+)'", said)}
    assert found == {int(own) if own else 0 if framework == "mxnet" else int(SPIN_COUNT[1])}
