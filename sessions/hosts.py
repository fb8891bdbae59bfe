"""The session that runs the chapters over several hosts."""

import nox

from common.backends.frameworks import FRAMEWORKS
from sessions import environments as python_of
from sessions.environments import require_known
from sessions.support import RESULTS, available

FEW = "--few"


@nox.session(venv_backend="none")
def hosts(session: nox.Session) -> None:
    """Run both chapters over 2 and 3 hosts and compare; `-- jax`; `-- --few`: on 2 alone.

    Without `--few`, the recipes in launch/ train, too, under a real Slurm where there is one.
    """
    session.env.update(python_of.NO_GPUS)
    chosen = [each for each in session.posargs if each != FEW] or available()
    require_known(session, chosen, FRAMEWORKS)
    most = f"--over-hosts={2 if FEW in session.posargs else 4}"
    common, flags = python_of.common(session), [most, f"--out={RESULTS}"]
    for each in chosen:
        python = python_of.framework(session, each)
        session.run(python, "-m", "common.grid", each, *flags)
        grid = ["tests/support/hosts_grid.py", each, python, *flags]
        session.run(common, *grid, env={"PYTHONPATH": "."})
    if FEW not in session.posargs:
        for each in chosen:
            launched(session, each)
    plan = [most, "--suites", "--frameworks", *chosen]
    session.run(common, "-m", "common.parity", str(RESULTS), *plan)


def launched(session: nox.Session, framework: str) -> None:
    """Runs the recipes in launch/ in a framework; why some of them cannot run is the last line."""
    python = python_of.framework(session, framework)
    tests = ["tests/hosts/test_slurm_jobs.py", "--launched", "--framework", framework, "-rs"]
    session.run(python, "-m", "pytest", *tests)
