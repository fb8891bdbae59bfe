"""A case fails if a version gets the result right, or the remedy wrong."""

import pytest

from silent.report import report


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
