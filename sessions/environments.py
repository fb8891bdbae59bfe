"""The environments that sessions run in: what is in each, and in which versions.

Sessions share them, so that no framework is installed twice.
"""

from collections.abc import Sequence
from pathlib import Path

import nox

from sessions.pins import PINS
from sessions.support import Environment, available, mxnet_is_missing


def environment(
    session: nox.Session, name: str, pins: Sequence[str] = (), alone: Sequence[str] = ()
) -> str:
    """The Python of the environment `name`; it is made, or filled anew, only when need be.

    `pins` names its files in constraints/, if it is not `name`; what those of `alone` have is added
    without what it asks for.
    """
    pins = pins or [name]
    builds = ["torch-cpu", "torch"] if any("pytorch" in each for each in pins) else []
    made = Environment(Path(".nox") / name, *map(files, (pins, builds, alone)))
    if not made.complete():
        session.log(f"installing the environment {made.folder}, once")
        made.make(session.run_install)
    return str(made.python)


def files(names: Sequence[str]) -> list[Path]:
    """The files in constraints/ of these names."""
    return [Path("constraints") / f"{name}.txt" for name in names]


def require_available(session: nox.Session, framework: str) -> None:
    """Skips the session if the framework cannot be had."""
    if framework not in available():
        session.skip(f"MXNet 1.9.1 cannot be had here: {mxnet_is_missing()}")


def framework(session: nox.Session, name: str) -> str:
    """The Python of a framework's environment; skips the session if it cannot be had."""
    require_available(session, name)
    return environment(session, name)


def bench(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework, its rivals and the book's own package."""
    name = f"bench-{framework}"
    return environment(session, name, [name if name in PINS else framework], alone=["d2l"])


def notebook(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework and Jupyter; skips as above."""
    require_available(session, framework)
    return environment(session, f"notebooks-{framework}", [framework, "notebooks"])


def site(session: nox.Session) -> str:
    """The Python of an environment that makes notebooks and site, and needs no framework."""
    return environment(session, "site")


def common(session: nox.Session) -> str:
    """The Python of an environment for what needs no framework."""
    return environment(session, "common")


def lint(session: nox.Session) -> str:
    """The Python of an environment with what checks style and types."""
    return environment(session, "lint")


def fuzz(session: nox.Session) -> str:
    """The Python of an environment with what makes hostile files."""
    return environment(session, "fuzz")


def audit(session: nox.Session) -> str:
    """The Python of an environment with what asks for known weaknesses."""
    return environment(session, "audit")
