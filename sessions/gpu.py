"""The session that proves both chapters on the GPUs of this machine."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import nox
from nox.command import CommandFailed

from common.backends.frameworks import FRAMEWORKS
from sessions import environments as python_of
from sessions.accelerators import Choice
from sessions.environments import RESULTS, available, require_known
from sessions.faults import passes

FOLDER: Final = RESULTS / "on-gpus"

MOST: Final = 4
"""As many GPUs are used: more show nothing that three do not."""


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """Test, time and compare all on the GPUs here, in results/on-gpus; `-- jax`: JAX alone."""
    chosen = session.posargs or available()
    require_known(session, chosen, FRAMEWORKS)
    choices = [python_of.choice(session, each) for each in chosen]
    require_gpus(session, choices)
    planned = list(commands(session, choices))
    shutil.rmtree(FOLDER, ignore_errors=True)  # what an earlier proof left is none of this one
    # Whatever fails, the rest is made, too: it shows where the trouble is.
    passed = [passes(session, *command) for command in planned]
    passed.append(is_timed(session, choices))
    # Last, so that its page has the speeds, too.
    plan = ["--suites", "--frameworks", *chosen, "--more-devices", *flags(choices)]
    common = python_of.common(session)
    passed.append(passes(session, common, "-m", "common.parity", str(FOLDER), *plan))
    if not all(passed):
        session.error(f"something has failed, see above; all there is lies in {FOLDER}")


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


def commands(session: nox.Session, choices: Sequence[Choice]) -> Iterator[list[str]]:
    """What is run of each framework: the grid on CPU devices and on GPUs, and the tests."""
    gpus = f"--gpus={number(choices)}"
    for each in choices:
        python = python_of.made(session, each)
        grid = [python, "-m", "common.grid", each.framework, f"--out={FOLDER}"]
        yield from (grid, [*grid, "--more-devices"])
        if each.cards:
            yield from ([*grid, gpus], [*grid, gpus, "--more-devices"])
            yield [python, "-m", "pytest", "tests/gpu", gpus, f"--framework={each.framework}"]
