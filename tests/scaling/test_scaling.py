"""`python -m common.scaling` prints predictions, or refuses."""

import subprocess
import sys
from contextlib import nullcontext
from math import prod
from pathlib import Path
from statistics import median

import pytest

from common.chapters.chapters import SPECS
from common.chapters.scratch import ALLREDUCES
from common.models.nets import trainable
from common.scaling import __main__ as command
from common.scaling.measure import Compared, Costs, costs_of, trials

ROOT = Path(__file__).parents[2]


def test_costs_and_predictions_by_hand() -> None:
    ends, sent, added = trials(4, "halving")
    # 4 times, 4 chunks are sent: the message of one takes 3 s, its addition 5 s.
    times = {ends: 14.0, sent: 14.0 + 16 * 3, added: 14.0 + 16 * (3 + 5)}
    costs = costs_of(4, "halving", times)
    assert costs == Costs(7, 3, 5)
    # Every device sends 2 + 1 + 1 + 2 chunks; half of them are added.
    assert Compared(8, 4, "halving", 1.0, costs).predicted() == 4 * 7 + 24 * 3 + 12 * 5
    assert Compared(8, 3, "star", 1.0, costs).predicted() == 3 * 7 + 4 * 3 + 2 * 5
    assert costs_of(4, "halving", {**times, sent: 13.0, added: 12.0}) == Costs(7, 0, 0)
    assert Compared(8, 3, "native", 1.0, costs_of(3, "native", {})).predicted() is None


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
from common.scaling import __main__ as it
it.BUDGET, it.GRADIENTS = 5, (100_000,)
raise SystemExit(it.main())
"""


def test_it_measures_the_framework_under_test(framework: str) -> None:
    run = [sys.executable, "-c", SHORT, f"--framework={framework}", "--latency=7"]
    printed = subprocess.check_output(run, cwd=ROOT, text=True)
    assert printed.index("MEASURED") < printed.index("PREDICTED")
    assert "latency 7 µs and 25 GB/s" in " ".join(printed.split())
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines()]
    on_two = [row[2:] for row in rows if row[:2] == ["400 kB", "2"]]
    assert {algorithm for algorithm, *_ in on_two} == ALLREDUCES.keys()
    # The bound is a factor of 2 where nothing else runs; tests run two at a time.
    assert 1 / 3 < median(float(ratio) for *_, ratio in on_two if ratio) < 3
