"""The sessions of what goes wrong around a run, and of files that mean harm."""

from pathlib import Path
from typing import Final

import nox

import nox_environments as python_of
from nox_support import available

FAULTS: Final = Path("results/faults")


@nox.session(venv_backend="none")
def faults(session: nox.Session) -> None:
    """Kill runs, fill disks, freeze processes; 40 minutes on 2 cores, `-- --short`: 6 minutes."""
    short = "--short" in session.posargs
    chosen = [each for each in session.posargs if each != "--short"] or available()
    FAULTS.mkdir(parents=True, exist_ok=True)
    for framework in chosen:
        figures = FAULTS / f"{framework}.jsonl"
        figures.unlink(missing_ok=True)
        command = ["-m", "pytest", "tests/faults", f"--kills={1 if short else 2}"]
        command += ["--numprocesses=2", f"--figures={figures}", *(["--short"] if short else [])]
        python = python_of.framework(session, framework)
        session.run(python, *command, "--framework", framework)


@nox.session(venv_backend="none")
def fuzz(session: nox.Session) -> None:
    """Give each reader of files a million hostile ones; an hour on 2 cores."""
    session.run(python_of.fuzz(session), "-m", "fuzz", *session.posargs)
