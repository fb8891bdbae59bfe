"""`nox` runs every framework and compares; `nox -s tests` tests; `nox --list` lists the rest."""

import os
import shutil
import signal
import sys
from itertools import product
from pathlib import Path

import nox

# The plan of runs has one source; it needs nothing but the standard library.
sys.path.insert(0, str(Path(__file__).parent))
from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import CHAPTERS
from common.chapters.strategies import STRATEGIES
from notebooks.text.chapter import SHARED
from sessions import checks as checks, environments as python_of, newest as newest
from sessions.accelerators import Choice
from sessions.environments import (
    RESULTS,
    available,
    kept_programs,
    less_compiling,
    mxnet_is_missing,
    require_known,
)
from sessions.faults import train_through_kills
from sessions.gpu import flags as on_gpus, number, pythons_of_bench

nox.needs_version = ">=2024.4.15"
nox.options.sessions = [*FRAMEWORKS, "parity"]
# Then nox ends what it has started, as after Ctrl-C.
signal.signal(signal.SIGTERM, signal.default_int_handler)

HANDOVER = RESULTS / "handover"
OLD_NUMPY = ("chapters", "compare", "data", "diagnose", "models", "pairs", "parallel", "scaling")
"""Folders of shared tests that compute, and so run on MXNet's NumPy 1.23, too."""


def run_common(session: nox.Session, *command: str) -> None:
    """Runs a module that needs no framework."""
    session.run(python_of.common(session), "-m", *command)


def run_framework(session: nox.Session, framework: str) -> None:
    """Runs what the arguments say, else every run on 1 and 2 devices that is compared."""
    choice = python_of.choice(session, framework)
    python = python_of.made(session, choice)
    if session.posargs:
        chapter, *flags = session.posargs
        if chapter not in CHAPTERS:
            session.error(f"say which chapter: nox -s {framework} -- {CHAPTERS[0]} {chapter} ...")
        session.run(python, "-m", f"frameworks.{framework}.{chapter}", *flags)
        return
    run_grid(session, choice, python)


def run_grid(session: nox.Session, choice: Choice, python: str, *flags: str) -> None:
    """Runs the grid of a framework, on GPUs, too, where there are any."""
    command = [python, "-m", "common.grid", choice.framework, f"--out={RESULTS}", *flags]
    kept = kept_programs(choice.name)
    if kept and not flags:
        # The first two tell how long an epoch took, with what JAX compiles in it.
        session.run(*command, "--chapter", "scratch", "concise")
        session.run(*command, "--chapter", "strategies", env=kept)
    else:
        session.run(*command, env=kept)
    if choice.cards:
        gpus = number(python_of.choices(session))
        session.run(*command, f"--gpus={gpus}")


def compare(session: nox.Session, *flags: str) -> None:
    """Compares what the flags say; without a folder among them, what plain `nox` has run."""
    if mxnet_is_missing():
        session.log(f"without MXNet, which cannot be had here: {mxnet_is_missing()}")
    if flags and not flags[0].startswith("-"):
        run_common(session, "common.parity", *flags)
        return
    plan = [str(RESULTS), "--suites", "--frameworks", *available()]
    plan += on_gpus(python_of.choices(session))
    run_common(session, "common.parity", *plan, *flags)


for each in FRAMEWORKS:

    def _run(session: nox.Session, framework: str = each) -> None:
        run_framework(session, framework)

    _run.__doc__ = f"Run {each}; or e.g. `-- scratch --devices 4 --epochs 3`."
    nox.session(name=each, venv_backend="none")(_run)


@nox.session(venv_backend="none")
def parity(session: nox.Session) -> None:
    """Compare what is in results/; other folders and frameworks after `--`."""
    compare(session, *session.posargs)


@nox.session(venv_backend="none")
def grid(session: nox.Session) -> None:
    """Add runs on 3 and 4 devices to plain `nox`'s and compare them; `-- jax`: JAX alone."""
    chosen = session.posargs or available()
    require_known(session, chosen, FRAMEWORKS)
    for framework in chosen:
        choice = python_of.choice(session, framework)
        run_grid(session, choice, python_of.made(session, choice), "--more-devices")
    compare(session, "--more-devices", "--frameworks", *chosen)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run every test, on every framework; shared ones that compute run on NumPy 1.23, too."""
    session.env.update(python_of.NO_GPUS)
    # Most tests use one core, and some wait; those of a file share what they have set up. Sorted by
    # their number of tests, files with few, long ones would come last, and leave cores idle.
    at_once = (os.cpu_count() or 1) + 1
    command = ["pytest", f"--numprocesses={at_once}", "--dist=loadfile", "--no-loadscope-reorder"]
    command += session.posargs
    run_common(session, *command)
    if not session.posargs:
        jupyter = f"--jupyter={python_of.notebook(session, 'jax')}"
        session.run(python_of.site(session), "-m", *command, "tests/site", jupyter)
    shutil.rmtree(HANDOVER, ignore_errors=True)  # or its checkpoints would be in the way
    for framework in available():
        # Each leaves weights where the other frameworks' tests find them.
        made = ["tests/support/handover.py", framework, str(HANDOVER)]
        session.run(python_of.framework(session, framework), *made, env={"PYTHONPATH": "."})
    command.append(f"--handover={HANDOVER}")
    for framework in available():
        python = python_of.framework(session, framework)
        if framework == "mxnet" and all(each.startswith("-") for each in session.posargs):
            again = [f"tests/{folder}" for folder in OLD_NUMPY]
            # It is slow, and calls what the tests beside it call.
            again.append("--ignore=tests/compare/test_tampering.py")
            session.run(python, "-m", *command, *again)
        session.run(python, "-m", *command, "--framework", framework, env=less_compiling(framework))


@nox.session(venv_backend="none")
def hosts(session: nox.Session) -> None:
    """Run both chapters over 2 and 3 hosts and compare; `-- jax`; `-- --few`: on 2 alone.

    Without `--few`, the recipes in launch/ train, too, under a real Slurm where there is one.
    """
    session.env.update(python_of.NO_GPUS)
    chosen = [each for each in session.posargs if each != "--few"] or available()
    require_known(session, chosen, FRAMEWORKS)
    most = f"--over-hosts={2 if '--few' in session.posargs else 4}"
    common, flags = python_of.common(session), [most, f"--out={RESULTS}"]
    for each in chosen:
        python = python_of.framework(session, each)
        kept = kept_programs(each)
        session.run(python, "-m", "common.grid", each, *flags, env=kept)
        grid = ["tests/support/hosts_grid.py", each, python, *flags]
        session.run(common, *grid, env={"PYTHONPATH": ".", **kept})
    if "--few" not in session.posargs:
        # Why some recipes cannot run here is the last line.
        tests = ["tests/hosts/test_slurm_jobs.py", "--launched", "-rs", "--framework"]
        for each in chosen:
            session.run(python_of.framework(session, each), "-m", "pytest", *tests, each)
    plan = [most, "--suites", "--frameworks", *chosen]
    session.run(common, "-m", "common.parity", str(RESULTS), *plan)


@nox.session(venv_backend="none")
def d2l(session: nox.Session) -> None:
    """Compare every framework with the book's own package, in environments of its own."""
    session.env.update(python_of.NO_GPUS)
    command = ["-m", "pytest", "-Wdefault", "tests/book_package", *session.posargs, "--framework"]
    for framework in available():
        session.run(python_of.bench(session, framework), *command, framework)


@nox.session(venv_backend="none")
def book(session: nox.Session) -> None:
    """Train with the book's setting on 1 and 2 devices; half an hour on 2 cores.

    `-- concise`: a ResNet-18 of width 16, on 2 devices, killed twice on its way; 2 hours.
    `-- strategies`: three steps of a deeper LeNet by each strategy; what they send and keep.
    """
    require_known(session, session.posargs, CHAPTERS)
    if "concise" in session.posargs:
        folder = RESULTS / "book-concise"
        for framework in available():
            train_through_kills(session, framework, folder)
    elif "strategies" in session.posargs:
        folder = RESULTS / "book-strategies"
        for framework, strategy, devices in product(available(), STRATEGIES, (1, 2, 4)):
            python = python_of.framework(session, framework)
            command = python, "-m", f"frameworks.{framework}.strategies", f"--strategy={strategy}"
            setting = "--preset=book", "--depth=8", "--steps=3", "--quiet", f"--out={folder}"
            session.run(*command, f"--devices={devices}", *setting)
    else:
        folder = RESULTS / "book"
        for framework in available():
            choice = python_of.choice(session, framework)
            python = python_of.made(session, choice)
            command = python, "-m", f"frameworks.{framework}.scratch", "--preset=book"
            for devices in (1, 2)[: len(choice.cards) or None]:  # there may be one GPU alone
                session.run(*command, f"--devices={devices}", f"--out={folder}")
    run_common(session, "common.summary", str(folder), f"--picture={folder / 'accuracy.svg'}")


@nox.session(venv_backend="none")
def seeds(session: nox.Session) -> None:
    """Train with 5 seeds and test whether accuracies differ by chance; `-- --chapter concise`."""
    folder, plan = str(RESULTS / "seeds"), ["--chapter=scratch", "--seeds=5", *session.posargs]
    for framework in available():
        python = python_of.framework(session, framework)
        session.run(python, "-m", "common.grid", framework, *plan, "--out", folder)
    run_common(session, "common.seeds", folder, *plan, "--frameworks", *available())


@nox.session(venv_backend="none")
def scaling(session: nox.Session) -> None:
    """Measure and predict allreduce in PyTorch; or e.g. `-- jax --latency 5`."""
    framework, *flags = session.posargs or ["pytorch"]
    if framework not in FRAMEWORKS:
        session.error(f"say which framework: nox -s scaling -- pytorch {framework} ...")
    command = "-m", "common.scaling", f"--framework={framework}", f"--out={RESULTS}"
    session.run(python_of.framework(session, framework), *command, *flags)


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Time every framework and what its users would run instead; half an hour on 2 cores.

    With `-- --gpus 2`, on GPUs.
    """
    if any(each.startswith("--gpus") for each in session.posargs):
        flags = pythons_of_bench(session, [python_of.choice(session, x) for x in available()])
    else:
        flags = [f"--python={name}={python_of.bench(session, name)}" for name in available()]
    run_common(session, "bench", *flags, f"--out={RESULTS}", *session.posargs)


@nox.session(venv_backend="none")
def notebooks(session: nox.Session) -> None:
    """Run every notebook; `-- jax`: JAX's alone, `-- --write`: keep the outputs."""
    flags = [each for each in session.posargs if each.startswith("-")]
    chosen = [each for each in session.posargs if each not in flags]
    require_known(session, chosen, [*FRAMEWORKS, SHARED])
    for each in chosen or [*available(), SHARED]:
        python = python_of.site(session) if each == SHARED else python_of.notebook(session, each)
        # Outputs that are kept tell how long an epoch took, with what JAX compiles in it.
        kept = {} if "--write" in flags else kept_programs(each)
        session.run(python, "-m", "notebooks.execute", each, *flags, env=kept)


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
    """Build the site of chapters, pages and reference in results/site, and check its links."""
    python = python_of.site(session)
    session.run(python, "-m", "notebooks.build", "--check")
    session.run(python, "-m", "notebooks.site", f"--out={RESULTS / 'site'}", *session.posargs)
