"""The sessions that check what is written, and what is installed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import nox

from sessions import accelerators, audit as about, environments as python_of, pins as pin_files
from sessions.accelerators import Choice
from sessions.environments import available, sources_of_pip

CONSTRAINTS = Path("constraints")
GPU_MACHINE = "x86_64-manylinux_2_28"


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style and format."""
    ruff = [python_of.environment(session, "lint"), "-m", "ruff"]
    session.run(*ruff, "check", ".")
    session.run(*ruff, "format", "--check", ".")


@nox.session(venv_backend="none")
def typing(session: nox.Session) -> None:
    """Check types, of each backend against its own framework."""
    mypy = [python_of.environment(session, "lint"), "-m", "mypy", "--num-workers=auto"]
    folders = ("bench", "common", "notebooks", "sessions", "silent", "tests", "noxfile.py")
    session.run(*mypy, *folders)
    for framework in available():
        python = python_of.framework(session, framework)
        session.run(*mypy, "-p", f"frameworks.{framework}", "--python-executable", python)


@nox.session(venv_backend="none")
def pins(session: nox.Session) -> None:
    """Write constraints/ again, in the versions that are named there; `-- jax`: one file.

    `-- --check`: see whether all builds for GPUs can be installed, and install none.
    """
    if "--check" in session.posargs:
        # It asks for metadata alone: nothing of the many gigabytes comes here.
        tried = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--require-hashes"]
        tried += [f"--python={python_of.common(session)}", f"--python-platform={GPU_MACHINE}"]
        # Wheels that lie here may be of builds for CPUs.
        indexes = {k: v for k, v in sources_of_pip().items() if k != "UV_FIND_LINKS"}
        for framework in accelerators.BUILDS:
            build = Choice(framework, True, "")
            alone, beside = python_of.pins_of(build), python_of.pins_beside_rivals(build)
            for names in [alone] if alone == beside else [alone, beside]:
                wanted = [f"--requirement={file}" for file in python_of.files(names)]
                session.run(*tried, *wanted, env=indexes)
        return
    for name in session.posargs or pin_files.PINS:
        session.log(f"writing {CONSTRAINTS / name}.txt")
        pin_files.write(name)


@nox.session(venv_backend="none")
def audit(session: nox.Session) -> None:
    """Check licences, and look up weaknesses; `-- --write`: write constraints/licences.txt."""
    python, names = python_of.environment(session, "audit"), about.pinned()
    made = sorted(stamp.parent for stamp in Path(".nox").glob("*/installed"))
    found = {pair for each in made for pair in about.installed(each)}
    if "--write" in session.posargs:
        about.write(found, names)
    listed = about.read(about.FILE.read_text(encoding="utf-8"))
    session.log(f"compared with what is installed in {', '.join(each.name for each in made)}")
    faults = [*about.faults(found, names, listed), *look_up(session, python)]
    if faults:
        session.error("\n".join(faults))


def look_up(session: nox.Session, python: str) -> Iterator[str]:
    """The weaknesses that are known of any package; warns where they cannot be looked up."""
    command = [python, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--format=json"]
    for name in pin_files.PINS:
        with TemporaryDirectory() as folder:
            report = Path(folder, "report")
            asked = ["-r", str(CONSTRAINTS / f"{name}.txt"), f"--output={report}"]
            session.run(*command, *asked, silent=True, success_codes=[0, 1])
            text = report.read_text(encoding="utf-8") if report.exists() else ""
        weak, known, unknown = about.weaknesses(text)
        yield from weak
        if not known:
            session.warn("NOT AUDITED: no weaknesses can be looked up from here")
            return
        if unknown:
            session.warn(f"NOT AUDITED in {name}.txt: {', '.join(sorted(unknown))}")
