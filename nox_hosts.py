"""The session that runs the chapters over several hosts."""

from pathlib import Path

import nox

import nox_environments as python_of
from common.backends.frameworks import FRAMEWORKS
from nox_support import available

RESULTS = Path("results")
SUITES = ("one-host", "hosts")


@nox.session(venv_backend="none")
def hosts(session: nox.Session) -> None:
    """Run both chapters over 2 and 3 virtual hosts and compare; `-- jax`, `-- --few`: some."""
    flags = [each for each in session.posargs if each.startswith("-")]
    chosen = [each for each in session.posargs if each not in flags] or available()
    if unknown := [each for each in chosen if each not in FRAMEWORKS]:
        session.error(f"there is no {' '.join(unknown)}: choose from {', '.join(FRAMEWORKS)}")
    common, out = python_of.common(session), f"--out={RESULTS}"
    for each in chosen:
        python = python_of.framework(session, each)
        session.run(python, "-m", "common.grid", each, "--hosts", *flags, out)
        grid = ["tests/support/hosts_grid.py", each, python, *flags, out]
        session.run(common, *grid, env={"PYTHONPATH": "."})
    suites = ["--suites", *SUITES, "--frameworks", *chosen]
    few = ["--few"] if "--few" in flags else []
    session.run(common, "-m", "common.parity", str(RESULTS), "--hosts", *few, *suites)
