"""The environments that sessions run in: what is in each, and in which versions.

Sessions share them, so that no framework is installed twice.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import nox

from common.base.errors import BusyError
from sessions import accelerators
from sessions.accelerators import Choice, NoAcceleratorError
from sessions.pins import PINS
from sessions.support import Environment, available, mxnet_is_missing

NO_GPUS: Final = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Tests of what CPUs do see no GPU: one that asks for three devices would want three GPUs."""

INSTALLING: Final = 1800
"""Seconds that a session waits while another one makes the environment that both need."""


def require_known(session: nox.Session, chosen: Iterable[str], known: Sequence[str]) -> None:
    """Ends the session with a line if something is chosen that there is not."""
    if unknown := [each for each in chosen if each not in known]:
        session.error(f"there is no {' '.join(unknown)}: choose from {', '.join(known)}")


def environment(
    session: nox.Session, name: str, pins: Sequence[str] = (), alone: Sequence[str] = ()
) -> str:
    """The Python of the environment `name`; it is made, or filled anew, only when need be.

    `pins` names its files in constraints/, if it is not `name`; what those of `alone` have is added
    without what it asks for.
    """
    pins = pins or [name]
    either = any("pytorch" in each for each in pins) and "torch" not in pins
    builds = ["torch-cpu", "torch"] if either else []
    wanted = Environment(Path(".nox") / name, *map(files, (pins, builds, alone)))
    if not wanted.complete():
        with alone_with(session, wanted.folder):
            if not wanted.complete():
                session.log(f"installing the environment {wanted.folder}, once")
                wanted.make(session.run_install)
    return str(wanted.python)


@contextmanager
def alone_with(session: nox.Session, folder: Path) -> Iterator[None]:
    """No other session makes this environment meanwhile: each begins with nothing.

    Ends the session if another one takes too long.
    """
    if sys.platform == "win32":  # which has no such locks
        yield
        return
    from common.base.locks import held

    folder.parent.mkdir(exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(held(folder.parent, folder.name, 0))
        except BusyError:
            session.log(f"waiting for another session that makes {folder}")
            try:
                stack.enter_context(held(folder.parent, folder.name, INSTALLING))
            except BusyError:
                session.error(f"another session is still at work on {folder}: end it, or wait")
        yield


def files(names: Sequence[str]) -> list[Path]:
    """The files in constraints/ of these names."""
    return [Path("constraints") / f"{name}.txt" for name in names]


def choice(session: nox.Session, framework: str) -> Choice:
    """Whether a framework gets its build for GPUs; the session says so, and why.

    Ends the session if that is asked for and cannot be, and skips it without the framework.
    """
    if framework not in available():
        session.skip(f"MXNet 1.9.1 cannot be had here: {mxnet_is_missing()}")
    try:
        found = accelerators.choice(framework)
    except NoAcceleratorError as error:
        session.error(str(error))
    session.log(found.line)
    return found


def choices(session: nox.Session, frameworks: Iterable[str]) -> list[Choice]:
    """The same of several frameworks, without a word."""
    try:
        return [accelerators.choice(each) for each in frameworks]
    except NoAcceleratorError as error:
        session.error(str(error))


def folder_of(framework: str) -> str:
    """The folder of a framework's environment, for those who look."""
    try:
        return f".nox/{accelerators.choice(framework).name}"
    except NoAcceleratorError:  # its session says why
        return f".nox/{framework}"


def framework(session: nox.Session, name: str) -> str:
    """The Python of a framework's environment; ends or skips the session as `choice` does."""
    return made(session, choice(session, name))


def made(session: nox.Session, choice: Choice) -> str:
    """The Python of the environment that a framework's sessions take."""
    return environment(session, choice.name, pins_of(choice))


def pins_of(choice: Choice) -> list[str]:
    """The names of the files that a framework is installed from."""
    # PyTorch's two builds are of one package, which stands in files of its own.
    return ["pytorch", "torch"] if choice.name == "pytorch-cuda" else [choice.name]


def bench(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework, its rivals and the book's own package.

    It is the build for CPUs: in one for GPUs, rivals could fail where these are hidden.
    """
    return beside_rivals(session, Choice(framework, False, ""))


def beside_rivals(session: nox.Session, choice: Choice) -> str:
    """The same, with the build that a framework's sessions take."""
    return environment(session, f"bench-{choice.name}", pins_beside_rivals(choice), alone=["d2l"])


def pins_beside_rivals(choice: Choice) -> list[str]:
    """The names of the files that a framework and its rivals are installed from."""
    rivals = [name] if (name := f"bench-{choice.framework}") in PINS else []
    return [*rivals, *pins_of(choice)] if choice.cuda else rivals or [choice.framework]


def notebook(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework and Jupyter; ends or skips as above."""
    found = choice(session, framework)
    return environment(session, f"notebooks-{found.name}", [*pins_of(found), "notebooks"])


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
