"""The session that proves both chapters on the GPUs of this machine."""

import shutil
from collections.abc import Iterable, Sequence
from typing import Final

import nox
from nox.command import CommandFailed

from common.backends.frameworks import FRAMEWORKS
from common.prove import MOST
from sessions import accelerators, environments as python_of
from sessions.accelerators import Choice
from sessions.environments import RESULTS, available, require_known
from sessions.faults import passes

FOLDER: Final = RESULTS / "on-gpus"


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """Test, time and compare all on the GPUs here, in results/on-gpus; `-- jax`: JAX alone.

    `-- --python jax=/opt/venv/bin/python`: an interpreter of your own, which is not timed.
    """
    prove = [python_of.common(session), "-m", "common.prove", f"--out={FOLDER}", "--more-devices"]
    if any(each.startswith("--python") for each in session.posargs):
        if isinstance(found := accelerators.driver(), str):
            session.error(f"no framework can have a GPU here: {found}; see docs/gpu.md")
        clear()
        session.run(*prove, f"--gpus={min(MOST, len(found.cards))}", *session.posargs)
        return
    chosen = session.posargs or available()
    require_known(session, chosen, FRAMEWORKS)
    choices = [python_of.choice(session, each) for each in chosen]
    require_gpus(session, choices)
    pythons = [f"--python={each.framework}={python_of.made(session, each)}" for each in choices]
    clear()
    # Whatever fails, the rest is made, too: it shows where the trouble is. The comparison is last,
    # so that its page has the speeds.
    passed = [is_timed(session, choices), passes(session, *prove, *pythons, *flags(choices))]
    if not all(passed):
        session.error(f"something has failed, see above; all there is lies in {FOLDER}")


def clear() -> None:
    """Removes what an earlier proof left: it is none of this one."""
    shutil.rmtree(FOLDER, ignore_errors=True)


def require_gpus(session: nox.Session, choices: Iterable[Choice]) -> None:
    """Ends the session with a line if no framework has a GPU."""
    if not any(each.cards for each in choices):
        session.error("no framework has a GPU here: see the lines above, and docs/gpu.md")


def pythons_of_bench(session: nox.Session, choices: Sequence[Choice]) -> list[str]:
    """What the benchmark is told of the environments of frameworks that have GPUs."""
    require_gpus(session, choices)
    on_gpus = [each for each in choices if each.cards]
    return [f"--python={x.framework}={python_of.beside_rivals(session, x)}" for x in on_gpus]


def is_timed(session: nox.Session, choices: Sequence[Choice]) -> bool:
    """Whether the benchmark could be installed, and ran well."""
    try:
        timed = pythons_of_bench(session, choices)
    except CommandFailed:
        return False
    shape = f"--gpus={number(choices)}", "--rounds=1", f"--out={FOLDER}"
    return passes(session, python_of.common(session), "-m", "bench", *timed, *shape)


def number(choices: Iterable[Choice]) -> int:
    """How many GPUs the frameworks that have any are run on; 0 if none has."""
    return min([MOST, *counts]) if (counts := [len(x.cards) for x in choices if x.cards]) else 0


def flags(choices: Sequence[Choice]) -> list[str]:
    """What the comparison is told of GPUs: nothing if there are none."""
    if not number(choices):
        return []
    without = [each.framework for each in choices if not each.cards]
    return [f"--gpus={number(choices)}", *(["--without-gpu", *without] if without else [])]
