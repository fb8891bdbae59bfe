"""`nox` runs every framework and compares; `nox -s tests` tests; `nox --list` lists the rest."""

import os
import signal
import sys
from pathlib import Path

import nox

# The plan of runs has one source; it needs nothing but the standard library.
sys.path.insert(0, str(Path(__file__).parent))
from common.backends.frameworks import FRAMEWORKS
from common.chapters.spec import CHAPTERS
from notebooks.text.chapter import SHARED
from sessions import environments as python_of
from sessions.accelerators import Choice
from sessions.checks import common_gpus, on_gpus, passes, pythons_of_bench
from sessions.environments import RESULTS, available, compilation_cache, require_known

nox.needs_version = ">=2024.4.15"
nox.options.sessions = [*FRAMEWORKS, "parity"]
# With it, processes of a session would not find the modules of this folder.
os.environ.pop("PYTHONSAFEPATH", None)
# Then nox ends its processes, as after Ctrl-C.
signal.signal(signal.SIGTERM, signal.default_int_handler)
# Else each of a thousand processes would compile all sources that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

GRIDS: list[str] = []
"""The frameworks whose runs have been made here: a line was printed for each."""
DECIDE = "from common.data.download import decide; print(decide())"
OLD_NUMPY = (
    *("compare/test_distances.py", "compare/test_parity.py", "compare/test_reference.py"),
    *("data/test_data.py", "diagnose", "models", "pairs", "parallel", "scaling"),
)
"""Shared tests whose code calls NumPy most, and so run on MXNet's NumPy 1.23, too."""


def run_common(session: nox.Session, *command: str) -> None:
    """Runs a module that needs no framework."""
    session.run(python_of.environment(session, "common"), "-m", *command)


def decide(session: nox.Session) -> None:
    """Decides on the data of all runs: the first session that trains fetches them for all."""
    if "FASHION_MNIST_DIR" not in os.environ:
        command = python_of.environment(session, "common"), "-c", DECIDE
        folder = session.run(*command, silent=True, log=False, stderr=None)
        os.environ["FASHION_MNIST_DIR"] = str(folder or "").strip()


def run_chapter(session: nox.Session, framework: str) -> None:
    """Runs the chapter that the arguments name, else the runs of plain `nox`."""
    if not session.posargs:
        run_grid(session, framework)
        return
    chapter, *flags = session.posargs
    if chapter not in CHAPTERS:
        session.error(f"say which chapter: nox -s {framework} -- {CHAPTERS[0]} {chapter} ...")
    python = python_of.framework(session, framework)
    session.run(python, "-m", f"frameworks.{framework}.{chapter}", *flags)


def run_grid(session: nox.Session, framework: str, *flags: str) -> None:
    """Runs the grid of a framework, also on GPUs where there are any."""
    choice = python_of.choice(session, framework)
    command = [python_of.chosen(session, choice), "-m", "common.grid", framework]
    command += [f"--out={RESULTS}", *flags]
    decide(session)
    GRIDS.append(framework)
    session.run(*command, env=compilation_cache(choice.name))
    if choice.cards:
        session.run(*command, f"--gpus={common_gpus(python_of.choices(session))}")


def compare(session: nox.Session, *flags: str) -> None:
    """Compares as the flags say; without a folder among them, the runs of plain `nox`."""
    if missing := python_of.mxnet_is_missing():
        session.log(f"without MXNet, which cannot be had here: {missing}")
    if not flags or flags[0].startswith("-"):
        gpus = on_gpus(python_of.choices(session))
        brief = ["--brief"] * bool(GRIDS)
        flags = str(RESULTS), "--planned", "--frameworks", *available(), *gpus, *brief, *flags
    run_common(session, "common.parity", *flags)


for name in FRAMEWORKS:

    def _run(session: nox.Session, framework: str = name) -> None:
        run_chapter(session, framework)

    _run.__doc__ = f"Run {name}; or e.g. `-- scratch --devices 4 --epochs 3`."
    nox.session(name=name, venv_backend="none")(_run)


@nox.session(venv_backend="none")
def parity(session: nox.Session) -> None:
    """Compare the runs in results/; other folders and frameworks after `--`."""
    compare(session, *session.posargs)


@nox.session(venv_backend="none")
def grid(session: nox.Session) -> None:
    """Add runs on 3 and more devices to plain `nox`'s and compare them; `-- jax`: only JAX."""
    chosen = session.posargs or available()
    require_known(session, chosen, FRAMEWORKS)
    for framework in chosen:
        run_grid(session, framework, "--more-devices")
    compare(session, "--more-devices", "--frameworks", *chosen)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run every test, on every framework; some shared ones run on NumPy 1.23, too.

    A part that fails is named at the end, after the others.
    """
    session.env.update(python_of.NO_GPUS)
    # Tests of a file share fixtures; long files are first, so that no core is idle at the end. Some
    # tests wait, so there is one process more than there are cores.
    at_once = (os.cpu_count() or 1) + 1
    command = ["-m", "pytest", f"--numprocesses={at_once}", "--dist=loadfile"]
    command += ["--no-loadscope-reorder", *session.posargs]
    failed = []

    def run(part: str, *command: str, env: dict[str, str] | None = None) -> None:
        if not passes(session, *command, env=env):
            failed.append(part)

    run_common(session, "notebooks.web.runtime")  # a browser's tests load it
    run("common", python_of.environment(session, "common"), *command)
    if not session.posargs:
        jupyter = f"--jupyter={python_of.notebook(session, 'jax')}"
        run("site", python_of.environment(session, "site"), *command, "tests/site", jupyter)
    for framework in available():
        python = python_of.framework(session, framework)
        if framework == "mxnet" and all(flag.startswith("-") for flag in session.posargs):
            run("NumPy 1.23", python, *command, *(f"tests/{name}" for name in OLD_NUMPY))
        env = python_of.fast_compilation(framework)
        run(framework, python, *command, "--framework", framework, env=env)
    if failed:
        session.error(f"failed, see above: {', '.join(failed)}")


@nox.session(venv_backend="none")
def hosts(session: nox.Session) -> None:
    """Train ResNet-18 in 2 and 3 processes, as on several hosts, and compare; `-- jax`."""
    session.env.update(python_of.NO_GPUS)
    several = [name for name in available() if name != "mxnet"]  # which has one host
    chosen = session.posargs or several
    require_known(session, chosen, several)
    for framework in chosen:
        python = python_of.framework(session, framework)
        env = compilation_cache(framework) | python_of.fast_compilation(framework)
        tests = ["-m", "pytest", "tests/hosts", "--hosts", "--framework", framework]
        session.run(python, *tests, env=env)


@nox.session(venv_backend="none")
def d2l(session: nox.Session) -> None:
    """Compare every framework with the book's package, in environments that have it."""
    session.env.update(python_of.NO_GPUS)
    tests = ["-m", "pytest", "-Wdefault", "tests/book_package", *session.posargs, "--framework"]
    for framework in available():
        pins = [*python_of.pins_of(Choice(framework, False, "")), "d2l"]
        python = python_of.environment(session, f"d2l-{framework}", pins)
        session.run(python, *tests, framework)


@nox.session(venv_backend="none")
def book(session: nox.Session) -> None:
    """Train with the book's setting on 1 and 2 CPU devices, and compare; half an hour on 2 cores.

    `-- concise`: a ResNet-18 of width 16, on 2 devices, which resumes if it was killed; 2 hours.
    """
    session.env.update(python_of.NO_GPUS)
    chapter = session.posargs[0] if session.posargs else "scratch"
    require_known(session, [chapter], ("scratch", "concise"))
    folder = RESULTS / ("book" if chapter == "scratch" else f"book-{chapter}")
    # At a constant rate the accuracy swings: 0.891, 0.822, 0.855 after epochs 4, 5 and 6.
    resnet = "--width=16 --batch-size=256 --lr=0.1 --lr-decay=linear --resume"
    runs = {
        "scratch": ["--devices=1", "--devices=2"],
        "concise": [f"{resnet} --devices=2 --checkpoint-dir={folder / 'kept'}"],
    }
    decide(session)
    for framework in available():
        python = python_of.framework(session, framework)
        command = python, "-m", f"frameworks.{framework}.{chapter}", "--preset=book"
        for flags in runs[chapter]:
            session.run(*command, *flags.split(), f"--out={folder}")
    if chapter == "scratch":
        run_common(session, "common.parity", str(folder))


@nox.session(venv_backend="none")
def planted(session: nox.Session) -> None:
    """Plant bugs that people have met, and show what catches each; `-- --write`: keep the page."""
    session.env.update(python_of.NO_GPUS)
    decide(session)
    for name in available():
        command = python_of.framework(session, name), "-m", "planted", f"--framework={name}"
        session.run(*command, env=compilation_cache(name))
    run_common(session, "planted", *session.posargs)


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Time every framework and the usual high-level loops; `-- --gpus 2`: on GPUs."""
    gpus = any(flag.startswith("--gpus") for flag in session.posargs)
    choices = [python_of.choice(session, x) if gpus else Choice(x, False, "") for x in available()]
    pythons = pythons_of_bench(session, choices, gpus=gpus)
    run_common(session, "bench", *pythons, f"--out={RESULTS}", *session.posargs)


@nox.session(venv_backend="none")
def notebooks(session: nox.Session) -> None:
    """Run every notebook; `-- jax`: only JAX's, `-- --write`: keep the outputs."""
    flags = [word for word in session.posargs if word.startswith("-")]
    chosen = [word for word in session.posargs if word not in flags]
    require_known(session, chosen, [*FRAMEWORKS, SHARED])
    for name in chosen or [*available(), SHARED]:
        # In outputs that are kept, the time of an epoch includes JAX's compilation.
        cache = {} if "--write" in flags else compilation_cache(name)
        command = "-m", "notebooks.execute", name, *flags
        session.run(python_of.notebook(session, name), *command, env=cache)


@nox.session(venv_backend="none")
def lab(session: nox.Session) -> None:
    """Open the notebooks of a framework in Jupyter Lab, or `parity`: `nox -s lab -- jax`."""
    name, *flags = session.posargs or ["pytorch"]
    require_known(session, [name], [*FRAMEWORKS, SHARED])
    target = f"notebooks/{name}" + (".ipynb" if name == SHARED else "")
    session.run(python_of.notebook(session, name), "-m", "jupyterlab", target, *flags)


@nox.session(venv_backend="none")
def site(session: nox.Session) -> None:
    """Build the site of chapters, pages and reference in results/site, and check its links."""
    python = python_of.environment(session, "site")
    session.run(python, "-m", "notebooks.build", "--check")
    session.run(python, "-m", "notebooks.web.runtime")
    flags = ["-W", "--keep-going", "-q", "-E", *session.posargs]  # a broken link is an error
    session.run(python, "-m", "sphinx", *flags, "docs", str(RESULTS / "site"))
    session.log(f"open {RESULTS / 'site' / 'index.html'}, or serve the folder: figures to explore")
    session.log(f"change only then: python -m http.server --directory {RESULTS / 'site'}")
