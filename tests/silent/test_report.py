"""A case fails if a version gets the result right, or the remedy wrong."""

from typing import Any

import pytest

from silent.report import report


def test_a_case_says_how_far_apart_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    results: dict[str, Any] = {"fit": [1, 2.5], "split": [1]}
    report("it 1.0+cpu", [1, 2], results, {"a loop": [1, 2]})
    assert capsys.readouterr().out.splitlines() == [
        "it 1.0",
        "expected         1 2",
        "fit              1 2.5  wrong by 0.25",
        "split            1      wrong: 1 of 2 numbers",
        "instead: a loop  1 2    right",
    ]


@pytest.mark.parametrize(
    ("results", "remedies", "line"),
    [
        ({"fit": 3, "split": 2}, {"a loop": 2}, "split: this version gets it right"),
        ({"fit": 3}, {"a loop": 1}, "instead: a loop: this version gets it wrong, too"),
        ({"fit": 3}, {"a loop": float("nan")}, "instead: a loop: this version gets it wrong, too"),
    ],
)
def test_a_mended_version_and_a_wrong_remedy_are_errors(
    results: dict[str, float], remedies: dict[str, float], line: str
) -> None:
    with pytest.raises(SystemExit, match=f"^{line}; change docs/silent.md$"):
        report("it 1.0", 2, results, remedies)
