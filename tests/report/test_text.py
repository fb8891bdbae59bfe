"""A verdict's conclusion says no more than was compared, and what failed comes in order."""

from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.compare.findings import HEADINGS, Check, Comparison, Verdict
from common.report.text import conclusion, print_verdict, rows
from common.settings.arguments import all_settings
from common.settings.config import Config

LACK: Any = {"suite": "float64-ring", "lacking": {"mxnet": "it has no ring"}}
ALONE = "jax computed the same as NumPy in single steps, and, where they share an answer, on other"


def check(name: str = "gradient", framework: str = "jax", **found: Any) -> Check:
    """A check that has passed, of a suite."""
    about = {"framework": framework, "devices": 2, "suite": "float64", "chapter": "scratch"}
    measured = {"quantity": name, "distance": 1.5e-15, "tolerance": 1e-10, "passed": True}
    return Check(check=name, **{**about, **measured, **found})


def every(*names: str) -> list[Check]:
    return [check(framework=name) for name in names or FRAMEWORKS]


def comparison(*checks: Check, kind: str = "cpu", **more: Any) -> Comparison:
    config = Config.of(all_settings("jax", "scratch", {"steps": 10}), 2, kind)
    about: Any = {"suite": "float64", "chapter": "scratch", "compared_with": "NumPy", **more}
    return Comparison(config=config.on_data("synthetic", 951, 1101), checks=list(checks), **about)


def verdict(*comparisons: Comparison, **more: Any) -> Verdict:
    passed = all(check.passed for each in comparisons for check in each.checks)
    return Verdict(passed=passed, created="", comparisons=list(comparisons), **more)


@pytest.mark.parametrize(
    ("comparisons", "said"),
    [
        ([comparison(*every())], "every framework computed the same"),
        (
            [comparison(*every()), comparison(*every(*FRAMEWORKS[:3]), **LACK)],
            "every framework computed the same, in all suites that it supports",
        ),
        (
            [comparison(*every(*FRAMEWORKS[:3]), **LACK)],
            "float64-ring: pytorch, tensorflow and jax agree (not supported by mxnet)",
        ),
        (
            [comparison(check(), check("steps"))],
            f"{ALONE} devices; not compared: pytorch, tensorflow, mxnet",
        ),
        (
            [comparison(check("devices"))],
            "jax computed the same as on other devices; not compared: pytorch, tensorflow, mxnet",
        ),
        (
            [
                comparison(check("steps", steps=10, hidden=4), *every()),
                comparison(*every(*FRAMEWORKS[:3]), kind="gpu"),
            ],
            "every framework computed the same; on GPUs, pytorch, tensorflow and jax agree; not "
            "compared: mxnet; how 4 of 10 steps moved weights was not compared: rounding hides it",
        ),
    ],
)
def test_the_conclusion_is_of_what_was_compared(comparisons: list[Comparison], said: str) -> None:
    count = sum(len(each.checks) for each in comparisons)
    assert conclusion(verdict(*comparisons)) == f"all {count} checks passed: {said}"


def test_a_brief_verdict_says_what_was_not_run_and_not_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ring = comparison(*every(*FRAMEWORKS[:3]), **LACK)
    more: Any = {"not_run": ["concise float64"], "ignored": ["a-4dev.json"]}
    print_verdict(verdict(comparison(*every()), ring, **more), brief=True)
    *said, last = capsys.readouterr().out.splitlines()
    assert said == [
        "scratch, float64, on 2 devices: all 4 checks passed",
        "scratch, float64-ring, on 2 devices: all 3 checks passed",
        "float64-ring: pytorch, tensorflow and jax agree (not supported by mxnet)",
        "not run: more devices, and 1 of the suites (parity.json names them); "
        "`nox -s grid` runs all",
    ]
    assert last.endswith("; not compared, as no suite has them: a-4dev.json")


def test_a_wrong_step_comes_before_what_rests_on_other_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = [check(x, passed=False, distance=0.5, where="a[1]", step=3) for x in HEADINGS]
    nan = check(passed=False, distance=None, where="gradients/fc2.bias", framework="mxnet")
    failed = comparison(*wrong, nan)
    cells = {row[0]: row[1:] for row in rows(failed)}
    assert cells["gradient of the first step"] == [
        ("5.0e-01 ✗", False),
        ("none ✗", False),
        "≤ 1e-10",
    ]
    assert cells["test accuracy"] == [("0.500 ✗", False), ("", True), "≥ 1e-10"]
    print_verdict(verdict(failed), brief=True)
    *_, last = said = capsys.readouterr().out.splitlines()
    told = [line.removeprefix("FAILED ") for line in said if line.startswith("FAILED ")]
    order = [line.partition(":")[0] for line in told]
    assert (order[:2], order[-2:]) == (["record", "steps"], ["peers", "devices"])
    assert told[1].endswith(": 5.0e-01 at step 3, a[1], at most 1.0e-10 is allowed")
    assert "gradient: mxnet scratch on 2, float64: gradients/fc2.bias cannot be compared" in told
    assert last == "20 of 20 checks FAILED"
