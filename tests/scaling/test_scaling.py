"""`python -m common.scaling`: constants, predictions, what is printed and what is refused."""

import json
import subprocess
import sys
from contextlib import nullcontext
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from common.chapters.chapters import SPECS
from common.chapters.scratch import ALLREDUCES
from common.models.nets import trainable
from common.parallel.schedules import SCHEDULES
from common.scaling import __main__ as command
from common.scaling.measure import Costs, costs_of, predict, trials

ROOT = Path(__file__).parents[2]


def costs(message: float, addition: float, *cut: float) -> Costs:
    """Costs of 1 and of 9 times as much for vectors of 1 and of 9 entries."""
    message_, addition_, *cuts = ([each, 9 * each] for each in (message, addition, *cut))
    return Costs([1, 9], message_, addition_, cuts)


def test_predictions_by_hand() -> None:
    known = costs(1, 10, 100, 200, 300, 400)
    # Four messages of 6 numbers, of which two are added.
    assert predict(known, SCHEDULES["star"](3), 6) == pytest.approx(4 * 6 + 2 * 60 + 3 * 600)
    # Every device sends 2 + 1 + 1 + 2 chunks of 2 numbers; half of them are added.
    expected = 24 * 2 + 12 * 20 + 4 * 3200
    assert predict(known, SCHEDULES["halving"](4), 8) == pytest.approx(expected)


@pytest.mark.parametrize("known", [costs(1, 2, 3, 4, 5, 6), costs(1, 0, 30, 4, 2, 0)])
def test_costs_are_found_from_the_times_of_trials(known: Costs) -> None:
    times: dict[Any, float] = {}
    for entries in known.entries:
        for trial in trials(entries):
            each = known.of(known.message, entries)
            each += trial.adds * known.of(known.addition, entries)
            cut = known.of(known.cut[trial.chunks - 1], entries)
            times[trial] = 2 * cut + trial.messages * each
    assert costs_of(times) == known
    times = {trial: (taken if trial.messages == 0 else 0) for trial, taken in times.items()}
    assert costs_of(times).message == costs_of(times).addition == [0, 0]


def test_the_gradients_are_those_of_the_book() -> None:
    shapes = [SPECS[name].chosen({}, "book").shapes() for name in ("scratch", "concise")]
    sizes = [sum(prod(each[name]) for name in each if trainable(name)) for each in shapes]
    assert list(command.GRADIENTS) == sizes


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("", "no framework is installed in this Python: `nox -s scaling`"),
        ("--bandwidth nan", "--bandwidth: 'nan' is not a number above 0"),
    ],
)
def test_a_bad_request_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: str,
    complaint: str,
) -> None:
    monkeypatch.setattr(command, "installed", list)
    with pytest.raises(SystemExit) if flags else nullcontext():
        assert command.main(flags.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("python -m common.scaling: error: ")
    assert complaint in said.err
    assert said.err.count("\n") == 1


def test_help_loads_nothing_heavy() -> None:
    heavy = {"numpy", "pydantic", "rich", "torch", "tensorflow", "jax", "mxnet"}
    code = f"import common.scaling.__main__, sys; assert not {heavy} & {{*sys.modules}}"
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
