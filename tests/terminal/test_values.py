"""Numbers that no machine has are refused by the command line, with the limit."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from bench.__main__ import parser as bench
from common import seeds
from common.parity import parser as parity
from common.scaling.__main__ import parser as scaling
from common.settings.arguments import parser
from common.settings.config import Config, Count
from common.terminal.command import Parser
from common.terminal.values import (
    COUNT,
    DEVICES,
    ENTRIES,
    LARGEST_SEED,
    REPEATS,
    STEPS,
    THREADS,
    WIDTH,
)

ROOT = Path(__file__).parents[2]
LIMITS = {
    "--devices": DEVICES,
    "--threads": THREADS,
    "--batch-size": COUNT,
    "--epochs": STEPS,
    "--steps": STEPS,
    "--width": WIDTH,
    "--train-examples": COUNT,
    "--test-examples": COUNT,
    "--seed": LARGEST_SEED,
}


def refusal(made: Parser, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line in which a request is refused."""
    with pytest.raises(SystemExit) as end:
        made.parse_args(words)
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (2, "", 1)
    return err


@pytest.mark.parametrize(("flag", "most"), LIMITS.items())
def test_each_number_has_a_limit(flag: str, most: int, capsys: pytest.CaptureFixture[str]) -> None:
    made = parser("jax", "concise")
    taken = vars(made.parse_args([flag, str(most)]))
    assert taken[flag.removeprefix("--").replace("-", "_")] == most
    for value in (str(most + 1), "9" * 5000):
        said = refusal(made, capsys, flag, value)
        assert f"{flag}: '{value}' is not a whole number" in said
        assert re.search(rf"(at most|to) {most} ", said)


def test_a_record_counts_as_far_as_the_command_line() -> None:
    count = TypeAdapter(Count)
    assert count.validate_python(COUNT) == COUNT
    assert all(count.validate_python(most) for most in LIMITS.values() if most != LARGEST_SEED)
    with pytest.raises(ValidationError):
        count.validate_python(COUNT + 1)
    assert str(LARGEST_SEED) in repr(Config.model_fields["seed"])


@pytest.mark.parametrize(
    ("made", "words", "most"),
    [
        (seeds.parser(), ["results", "--seeds", "1000000000"], REPEATS),
        (scaling(), ["--threads", "1000000"], THREADS),
        (scaling(), ["--sizes", "5", "1000000000000"], ENTRIES),
        (parity(), ["a", "b", "--tolerance", "1e300"], 1),
        (bench(), ["--rounds", "1000000000"], REPEATS),
    ],
)
def test_the_other_commands_have_limits_too(
    made: Parser, words: Sequence[str], most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(made, capsys, *words)
    assert f"'{words[-1]}' is not a " in said
    assert f" and at most {most} " in said
