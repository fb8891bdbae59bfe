"""The answers of the comparison in words, and the page of all of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, TypeAdapter

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.files import write_text
from planted.bug import Bug
from planted.bugs import BUGS

PAGE: Final = Path(__file__).parents[1] / "docs" / "planted.md"

HEAD: Final = """\
# Bugs that people have met, planted

Each of these trained without an error where it was met; here it is planted in functions of a
backend or of what all share. `nox -s planted` makes the runs, and writes which command turns red
and which words of the hint name the bug (✗: wrong). `python -m planted --list` names all mistakes.

| bug | caught by | named as | seconds |
| --- | --- | --- | ---: |
"""


class Answer(BaseModel):
    """What the comparison says of a bug in one framework.

    `caught` is the command whose runs turn red, "plain" or "grid"; empty: none.
    `named` is the hint, `red` the first failed check of each run. Seconds are of the processor.
    """

    bug: str
    framework: str
    caught: str = ""
    named: str = ""
    red: list[str] = []
    seconds: float = 0.0


ANSWERS: Final = TypeAdapter(list[Answer])


def summary(bug: Bug) -> str:
    """A bug in a line."""
    where = ", ".join(name for name in FRAMEWORKS if name in bug.wrong)
    return f"{bug.name}: {bug.words} ({bug.source}); {where}; {', '.join(bug.runs)}"


def lines(answer: Answer) -> str:
    """An answer in some lines."""
    caught = f"caught by {answer.caught}" if answer.caught else "GREEN"
    head = f"{answer.framework}, {answer.bug}: {caught}, {answer.seconds:.1f} s"
    return "\n".join([head, *(f"  {line}" for line in (answer.named, *answer.red) if line)])


def compare(folder: Path, *, write: bool) -> int:
    """Prints the table, and writes it as a page. Returns 1 if the page has another, else 0.

    Seconds may be others. Raises RequestError if a framework has left no answers.
    """
    files = [folder / f"{framework}.json" for framework in FRAMEWORKS]
    if missing := [file for file in files if not file.is_file()]:
        raise RequestError(f"there is no {missing[0]}: `nox -s planted` makes it")
    answers = [answer for file in files for answer in ANSWERS.validate_json(file.read_bytes())]
    rows = [row(bug, [x for x in answers if x.bug == bug.name]) for bug in BUGS.values()]
    print("\n".join(rows))
    table, heading, rest = PAGE.read_text().removeprefix(HEAD).partition("\n## ")
    if write:
        write_text(PAGE, HEAD + "\n".join(rows) + "\n" + heading + rest)
    kept, made = ([x.rsplit("|", 2)[0] for x in both] for both in (table.splitlines(), rows))
    if write or kept == made:
        return 0
    print(f"{PAGE.name} has another table: `nox -s planted -- --write` writes this one")
    return 1


def row(bug: Bug, answers: Sequence[Answer]) -> str:
    """A row of the table: a bug in all frameworks that can have it."""
    repository, _, number = bug.source.partition("#")
    name = f"[{bug.name}](https://github.com/{repository}/issues/{number})" if number else bug.name
    named = [answer.named for answer in answers if answer.named]
    wrong = [f"✗ {text}" for text in named if not bug.right or bug.right not in text]
    hint = wrong[0] if wrong else bug.right if named else "–"
    seconds = sum(answer.seconds for answer in answers)
    # What sees it is one word if that is the same in all frameworks.
    groups: dict[str, list[str]] = {}
    for answer in answers:
        groups.setdefault(answer.caught or "nothing", []).append(answer.framework)
    several = [f"{what}: {', '.join(names)}" for what, names in groups.items()]
    caught = "; ".join(several if several[1:] else groups)
    return f"| {name} | {caught} | {hint} | {seconds:.0f} |"
