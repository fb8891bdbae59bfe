"""The environments that sessions run in: what is in each, and in which versions.

Sessions share them, so that no framework is installed twice.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import nox

from nox_support import Environment, available, mxnet_is_missing

COMMON: Final = ("common", "browser", "test")
"""The extras of an environment that needs no framework."""

PROJECT: Final = nox.project.load_toml("pyproject.toml")["project"]


def environment(
    session: nox.Session,
    name: str,
    *extras: str,
    pins: Sequence[str] = (),
    alone: str | None = None,
) -> str:
    """The Python of the environment `name`; it is made, or filled anew, only when need be.

    `pins` names the files of versions, if it is not `name`; the package `alone` is added without
    what it asks for.
    """
    optional = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(need for extra in extras for need in optional[extra])]
    constraints = [Path("constraints") / f"{each}.txt" for each in pins or (name,)]
    made = Environment(Path(".nox") / name, wanted, constraints, alone)
    if not made.complete():
        session.log(f"installing the environment {made.folder}, once")
        made.make(session.run_install)
    return str(made.python)


def require_available(session: nox.Session, framework: str) -> None:
    """Skips the session if the framework cannot be had."""
    if framework not in available():
        session.skip(f"MXNet 1.9.1 cannot be had here: {mxnet_is_missing()}")


def framework(session: nox.Session, name: str) -> str:
    """The Python of a framework's environment; skips the session if it cannot be had."""
    require_available(session, name)
    return environment(session, name, name, "test")


def bench(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework, its rivals and the book's own package."""
    name = f"bench-{framework}"
    own = [name] if name in PROJECT["optional-dependencies"] else []
    pins = name if own else framework
    return environment(session, name, framework, *own, "test", pins=[pins], alone="d2l==1.0.3")


def notebook(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework and Jupyter; skips as above."""
    require_available(session, framework)
    name, extras = f"notebooks-{framework}", (framework, "notebooks")
    return environment(session, name, *extras, pins=extras)


def site(session: nox.Session) -> str:
    """The Python of an environment that makes notebooks and site, and needs no framework."""
    return environment(session, "site", "site", "notebooks", *COMMON)


def common(session: nox.Session) -> str:
    """The Python of an environment for what needs no framework."""
    return environment(session, "common", *COMMON)


def lint(session: nox.Session) -> str:
    """The Python of an environment with what checks style and types."""
    return environment(session, "lint", "lint", *COMMON)
