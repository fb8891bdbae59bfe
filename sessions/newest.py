"""The session that proves the newest releases of all that runs take."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import nox

from common.backends.frameworks import FRAMEWORKS
from sessions import environments as python_of
from sessions.environments import RESULTS, available, require_known
from sessions.faults import passes
from sessions.pins import PROJECT
from sessions.tables import parts, put

PAGE: Final = Path("docs/running.md")
TABLE: Final = "newest", "nox -s newest"
HEADINGS: Final = ("framework", "Python", "versions", "proven", "on")

HERE: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The Python at hand."""

LATER: Final = [f"3.{minor}" for minor in range(sys.version_info.minor + 1, 20)]
"""Later ones, which may be installed."""


@nox.session(venv_backend="none")
def newest(session: nox.Session) -> None:
    """Prove the newest releases, on this Python and later ones; `-- jax 3.13`: these alone.

    `-- --write`: add what was proven to the table in docs/running.md.
    """
    session.env.update(python_of.NO_GPUS)
    words = [each for each in session.posargs if each != "--write"]
    require_known(session, words, [*FRAMEWORKS, HERE, *LATER])
    pythons = [each for each in words if each not in FRAMEWORKS] or list(installed())
    chosen = [each for each in words if each in FRAMEWORKS] or available()
    done = {
        (framework, python): proven(session, framework, python)
        for python in pythons
        for framework in chosen
        if framework != "mxnet" or python == HERE  # its last release is for no later one
    }
    if not done:
        session.error("MXNet's last release is for no later Python")
    found = [row(framework, python) for (framework, python) in done if report(framework, python)]
    if "--write" in session.posargs:
        put(PAGE, *TABLE, table(found, parts(PAGE, *TABLE)[1]))
    for each in found:
        session.log(f"{', '.join(each)}")
    if failed := [" on Python ".join(each) for each, passed in done.items() if not passed]:
        session.error(f"not proven: {'; '.join(failed)}, see above and {RESULTS / 'newest'}")


def installed() -> Iterator[str]:
    """The Python at hand, and the later ones that are there."""
    yield HERE
    yield from filter(runs, LATER)


def runs(python: str) -> bool:
    """Whether a Python is there: its name may be on PATH for one that is not chosen."""
    if path := shutil.which(f"python{python}"):
        return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    return False


def proven(session: nox.Session, framework: str, python: str) -> bool:
    """Whether the newest releases can be installed, and are proven."""
    folder, out = python_of.FOLDER / f"newest-{framework}-{python}", folder_of(framework, python)
    shutil.rmtree(out, ignore_errors=True)
    made, needs = str(folder / "bin/python"), needed(framework)
    interpreter = sys.executable if python == HERE else f"python{python}"
    return (
        passes(session, interpreter, "-m", "venv", "--clear", str(folder))
        and passes(session, made, "-m", "pip", "install", "--quiet", "--upgrade", *needs)
        and passes(session, made, "-m", "common.prove", framework, f"--out={out}")
    )


def needed(framework: str) -> list[str]:
    """What the project's metadata ask for, in any version that they allow."""
    return [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][framework]]


def folder_of(framework: str, python: str) -> Path:
    """Where a proof goes."""
    return RESULTS / "newest" / f"{framework}-{python}"


def report(framework: str, python: str) -> dict[str, Any]:
    """What a proof has left; empty if it has not come to its end."""
    path = folder_of(framework, python) / "proof.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def row(framework: str, python: str) -> list[str]:
    """A proof as a row of the table."""
    told = report(framework, python)
    (found,) = told["frameworks"]
    versions = {**found["own"], "numpy": found["packages"]["numpy"]}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    verdict = "yes" if told["passed"] else "NO"
    return [framework, found["version"], listed, verdict, told["ended"][:10]]


def table(rows: Sequence[Sequence[str]], before: str) -> str:
    """The table with these rows, which take the place of those of the same framework and Python."""
    kept = [[cell.strip() for cell in line.split("|")[1:-1]] for line in before.splitlines()[2:]]
    places = {(each[0], each[1].rpartition(".")[0]): each for each in (*kept, *rows)}
    by_framework = sorted(places.items(), key=lambda item: FRAMEWORKS.index(item[0][0]))
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(each for _, each in by_framework)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
