"""The session that runs the chapters over several hosts."""

from pathlib import Path

import nox

import nox_environments as python_of
from common.backends.frameworks import FRAMEWORKS
from nox_support import available

RESULTS = Path("results")
FEW = "--few"
SUITES = ("one-host", "hosts")


@nox.session(venv_backend="none")
def hosts(session: nox.Session) -> None:
    """Run both chapters over 2 and 3 hosts and compare; `-- jax`; `-- --few`: on 2 alone."""
    chosen = [each for each in session.posargs if each != FEW] or available()
    if unknown := [each for each in chosen if each not in FRAMEWORKS]:
        session.error(f"there is no {' '.join(unknown)}: choose from {', '.join(FRAMEWORKS)}")
    most = f"--over-hosts={2 if FEW in session.posargs else 4}"
    common, flags = python_of.common(session), [most, f"--out={RESULTS}"]
    for each in chosen:
        python = python_of.framework(session, each)
        session.run(python, "-m", "common.grid", each, *flags)
        grid = ["tests/support/hosts_grid.py", each, python, *flags]
        session.run(common, *grid, env={"PYTHONPATH": "."})
    suites = ["--suites", *SUITES, "--frameworks", *chosen]
    session.run(common, "-m", "common.parity", str(RESULTS), most, *suites)
