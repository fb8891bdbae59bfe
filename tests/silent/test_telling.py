"""A case is an error once a version gets right what it shows, or the cure wrong."""

from typing import Any

import pytest

from silent.telling import tell


def test_a_case_says_how_far_apart_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    came: dict[str, Any] = {"fit": [1, 2.5], "split": [1]}
    assert tell("it 1.0+cpu", [1, 2], came, {"a loop": [1, 2]}) == 0
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
        ({"fit": 3}, {"a loop": 1}, "a loop: this version gets it wrong, too"),
        ({"fit": 3}, {"a loop": float("nan")}, "a loop: this version gets it wrong, too"),
    ],
)
def test_a_mended_version_and_a_spoilt_cure_are_errors(
    came: dict[str, float],
    instead: dict[str, float],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tell("it 1.0", 2, came, instead) == 1
    assert capsys.readouterr().err == f"{said}; change docs/silent.md\n"
