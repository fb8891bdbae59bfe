"""The OpenMP runtime of a framework knows how long threads look for work."""

import re

import pytest
from started import python

LOAD = """
import os
os.environ.pop("OMP_WAIT_POLICY", None)
from contextlib import nullcontext
from common.backends import loading
loading.native_errors_held_back = nullcontext  # where the runtime says what it has read
loading.import_backend({framework!r}, "scratch", 2)
"""

pytestmark = pytest.mark.only("pytorch", "mxnet")


@pytest.mark.parametrize("own", ["", "7"])
def test_threads_look_for_work_for_a_moment_or_as_the_user_says(framework: str, own: str) -> None:
    variables = {"OMP_DISPLAY_ENV": "verbose", **({"GOMP_SPINCOUNT": own} if own else {})}
    said = python("-c", LOAD.format(framework=framework), **variables).stderr
    found = {int(number) for number in re.findall(r"GOMP_SPINCOUNT = '(\d+)'", said)}
    assert found == {int(own) if own else 0 if framework == "mxnet" else 2000}
