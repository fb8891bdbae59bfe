"""`python -m common.scaling`: constants, predictions, what is printed and what is refused."""

import json
import re
import subprocess
import sys
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from clocks import HERE, costs, line, probes

from common.base.arrays import Array
from common.chapters.chapters import SPECS
from common.chapters.scratch import ALLREDUCES
from common.models.nets import trainable
from common.parallel.schedules import SCHEDULES, execute
from common.parallel.shards import shard_bounds
from common.scaling import __main__ as command
from common.scaling.predict import fit, predict
from common.scaling.workloads import COUNTS

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pydantic", "rich", "matplotlib", "torch", "tensorflow", "jax", "mxnet"}


def test_predictions_by_hand() -> None:
    known = costs(line(1, 0.1), line(10, 1), *(line(100 * cut, 0) for cut in (1, 2, 3, 4)))
    # Four messages of 6 numbers, of which two are added.
    assert predict(known, SCHEDULES["star"](3), 6) == pytest.approx(4 * 1.6 + 2 * 16 + 3 * 100)
    # Every device sends 2 + 1 + 1 + 2 chunks of 2 numbers; half of them are added.
    assert predict(known, SCHEDULES["halving"](4), 8) == pytest.approx(24 * 1.2 + 12 * 12 + 4 * 400)


@pytest.mark.parametrize("k", [1, *COUNTS])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_prediction_counts_every_message_that_is_carried_out(name: str, k: int) -> None:
    schedule, sizes = SCHEDULES[name](k), []

    def receive(chunk: Array, _: int) -> Array:
        sizes.append(len(chunk))
        return chunk.copy()

    held = [[np.ones(b - a) for a, b in shard_bounds(61, schedule.chunks)] for _ in range(k)]
    execute(schedule, held, receive)
    assert predict(costs(line(1, 0), line(0, 0)), schedule, 61) == len(sizes)
    assert predict(costs(line(0, 1), line(0, 0)), schedule, 61) == sum(sizes)


def test_the_fit_finds_the_constants() -> None:
    found = fit(probes(HERE, [129_068, 11_175_818]))
    pairs = [(found.message, HERE.message), (found.addition, HERE.addition)]
    for got, wanted in [*pairs, *zip(found.cut, HERE.cut, strict=True)]:
        for a, b in zip(got.pieces(), wanted.pieces(), strict=True):
            assert a.fixed == pytest.approx(b.fixed, rel=1e-6)
            assert a.per_entry == pytest.approx(b.per_entry, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("error", [0.01, 0.1, 0.5])
def test_no_constant_is_negative_whatever_the_clock_shows(error: float) -> None:
    free = costs(line(1e-5, 0), line(0, 1e-9), *HERE.cut)
    found = fit(probes(free, [1000], error))
    for both in (found.message, found.addition, *found.cut):
        assert all(each.fixed >= 0 <= each.per_entry for each in both.pieces())


def test_the_gradients_are_those_of_the_book() -> None:
    shapes = [SPECS[name].of_the_book().shapes() for name in ("scratch", "concise")]
    sizes = [sum(prod(each[name]) for name in each if trainable(name)) for each in shapes]
    assert list(command.GRADIENTS) == sizes


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("", "no framework is installed in this Python: `nox -s scaling`"),
        ("--sizes 5 0", "--sizes: '0' is not a whole number of at least 1"),
        ("--bandwidth nan", "--bandwidth: 'nan' is not a number above 0"),
        ("--framework jax --out file/x", "cannot write to .*file/x"),
    ],
)
def test_a_bad_request_is_refused_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: str,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "installed", list)
    Path("file").touch()
    try:
        status: Any = command.main(flags.split())
    except SystemExit as end:
        status = end.code
    assert status == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"python -m common\.scaling: error: .*{complaint}.*\n", err), err


def test_help_loads_nothing_heavy() -> None:
    code = f"import common.scaling.__main__, sys; assert not {HEAVY} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


SHORT = """
from common.scaling import __main__, measure
measure.BUDGET = 5
raise SystemExit(__main__.main())
"""


def test_it_measures_the_framework_under_test(framework: str, tmp_path: Path) -> None:
    flags = [f"--framework={framework}", "--sizes=100000", f"--out={tmp_path}", "--latency=7"]
    run = [sys.executable, "-c", SHORT, *flags]
    printed = " ".join(subprocess.check_output(run, cwd=ROOT, text=True).split())
    assert printed.index("MEASURED") < printed.index("Predicted over measured")
    assert printed.index("PREDICTED") < printed.index("latency 7.00 µs and 25.0 GB/s")
    found = json.loads((tmp_path / "scaling.json").read_text())["measured"]
    on_two = [each for each in found["compared"] if each["devices"] == 2]
    assert {each["algorithm"] for each in on_two} == ALLREDUCES.keys()
    # The bound is a factor of 2 where nothing else runs; tests run two at a time.
    ratios = [each["predicted"] / each["measured"] for each in on_two if each["predicted"]]
    assert 1 / 3 < median(ratios) < 3
