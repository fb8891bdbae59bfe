"""The sessions of the notebooks and of the site."""

import nox

from common.backends.frameworks import FRAMEWORKS
from notebooks.text.chapter import SHARED
from sessions import environments as python_of
from sessions.environments import require_known
from sessions.support import RESULTS, available


@nox.session(venv_backend="none")
def notebooks(session: nox.Session) -> None:
    """Run every notebook; `-- jax`: JAX's alone, `-- --write`: keep the outputs."""
    flags = [each for each in session.posargs if each.startswith("-")]
    chosen = [each for each in session.posargs if each not in flags]
    require_known(session, chosen, [*FRAMEWORKS, SHARED])
    for each in chosen or [*available(), SHARED]:
        python = python_of.site(session) if each == SHARED else python_of.notebook(session, each)
        session.run(python, "-m", "notebooks.execute", each, *flags)


@nox.session(venv_backend="none")
def lab(session: nox.Session) -> None:
    """Open the notebooks of a framework in Jupyter Lab, or `parity`: `nox -s lab -- jax`."""
    name, *flags = session.posargs or ["pytorch"]
    require_known(session, [name], [*FRAMEWORKS, SHARED])
    python = python_of.site(session) if name == SHARED else python_of.notebook(session, name)
    target = f"notebooks/{SHARED}.ipynb" if name == SHARED else f"notebooks/{name}"
    session.run(python, "-m", "jupyterlab", target, *flags)


@nox.session(venv_backend="none")
def site(session: nox.Session) -> None:
    """Build the site of chapters, pages and reference, and check its links; it is results/site."""
    python = python_of.site(session)
    if "--drafts" not in session.posargs:
        session.run(python, "-m", "notebooks.build", "--check")
    session.run(python, "-m", "notebooks.site", f"--out={RESULTS / 'site'}", *session.posargs)
