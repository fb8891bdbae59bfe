"""A case is an error once a version gets right what it shows, or the cure wrong."""

from typing import Any

import pytest

from silent.telling import tell


def test_a_case_says_how_far_apart_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    came: dict[str, Any] = {"fit": [1, 2.5], "split": [1]}
    tell("it 1.0+cpu", [1, 2], came, {"a loop": [1, 2]})
    assert capsys.readouterr().out.splitlines() == [
        "it 1.0",
        "expected         1 2",
        "fit              1 2.5  wrong by 0.25",
        "split            1      wrong: 1 of 2 numbers",
        "instead: a loop  1 2    right",
    ]


@pytest.mark.parametrize(
    ("came", "instead", "said"),
    [
        ({"fit": 3, "split": 2}, {"a loop": 2}, "split: this version gets it right"),
        ({"fit": 3}, {"a loop": 1}, "instead: a loop: this version gets it wrong, too"),
        ({"fit": 3}, {"a loop": float("nan")}, "instead: a loop: this version gets it wrong, too"),
    ],
)
def test_a_mended_version_and_a_spoilt_cure_are_errors(
    came: dict[str, float], instead: dict[str, float], said: str
) -> None:
    with pytest.raises(SystemExit, match=f"^{said}; change docs/silent.md$"):
        tell("it 1.0", 2, came, instead)
