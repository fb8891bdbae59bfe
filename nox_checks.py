"""The sessions that check what is written, and what is installed."""

from pathlib import Path

import nox

import nox_environments as python_of
import nox_pins
from nox_support import available

CONSTRAINTS = Path("constraints")


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style and format."""
    ruff = [python_of.lint(session), "-m", "ruff"]
    session.run(*ruff, "check", ".")
    session.run(*ruff, "format", "--check", ".")


@nox.session(venv_backend="none")
def typing(session: nox.Session) -> None:
    """Check types, of each backend against its own framework."""
    mypy = [python_of.lint(session), "-m", "mypy"]
    folders = ("bench", "common", "notebooks", "tests")
    session.run(*mypy, *folders, *map(str, Path().glob("nox*.py")))
    for framework in available():
        python = python_of.framework(session, framework)
        session.run(*mypy, "-p", f"frameworks.{framework}", "--python-executable", python)


@nox.session(venv_backend="none")
def pins(session: nox.Session) -> None:
    """Write constraints/ anew, in the versions that are named there; `-- jax`: one file."""
    for name in session.posargs or nox_pins.PINS:
        session.log(f"writing {CONSTRAINTS / name}.txt")
        nox_pins.write(name)
