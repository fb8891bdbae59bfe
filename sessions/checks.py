"""The sessions that check style, types and installed packages."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import nox

from sessions import accelerators, environments as python_of, pins as pin_files
from sessions.accelerators import Choice
from sessions.environments import available

LICENCES: Final = (
    *("Apache", "BSD", "ISC", "MIT", "MPL", "Mozilla Public License", "PSF"),
    *("Python Software Foundation", "Zlib", "NVIDIA"),
)
"""Parts of the names of licences that allow use and distribution with a notice.

NVIDIA's come with builds for GPUs only.
"""


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
    folders = "bench", "common", "notebooks", "planted", "sessions", "silent", "tests"
    session.run(*mypy, *folders, "noxfile.py")
    for framework in available():
        python = python_of.framework(session, framework)
        session.run(*mypy, "-p", f"frameworks.{framework}", "--python-executable", python)


@nox.session(venv_backend="none")
def pins(session: nox.Session) -> None:
    """Write constraints/ again, in the versions that are named there; `-- jax`: one file.

    `-- --check`: see whether all builds for GPUs can be installed, and install none.
    """
    if "--check" not in session.posargs:
        for name in session.posargs or pin_files.PINS:
            session.log(f"writing {pin_files.path_of(name)}")
            pin_files.write(name)
        return
    # A dry run asks for metadata only: nothing of the many gigabytes is downloaded.
    uv = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--require-hashes"]
    uv += [f"--python={python_of.common(session)}", "--python-platform=x86_64-manylinux_2_28"]
    for framework in accelerators.BUILDS:
        names = python_of.pins_of_bench(Choice(framework, True, ""))
        session.run(*uv, *(f"--requirement={pin_files.path_of(name)}" for name in names))


@nox.session(venv_backend="none")
def audit(session: nox.Session) -> None:
    """Check licences in the environments that are installed, and look up known weaknesses."""
    python = python_of.environment(session, "audit")
    # namex has the Apache licence, and does not say so.
    allowed = ["--partial-match", f"--allow-only={';'.join(LICENCES)}", "--ignore-packages=namex"]
    for folder in sorted(path.parent for path in Path(".nox").glob("*/pyvenv.cfg")):
        installed = f"--python={folder / 'bin/python'}"
        session.run(python, "-m", "piplicenses", installed, *allowed, "--summary")

    def look_up(name: str) -> str:
        command = [python, "-m", "pip_audit", "--disable-pip", "--require-hashes"]
        command.append(f"--requirement={pin_files.path_of(name)}")
        return str(session.run(*command, silent=True))  # a failure is printed

    with ThreadPoolExecutor(6) as pool:  # they wait for the network
        output = "".join(pool.map(look_up, pin_files.PINS))
    unknown = output.count("could not be audited")
    if unknown:
        session.warn(f"NOT AUDITED: {unknown} packages cannot be looked up from here")
