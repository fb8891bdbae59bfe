"""The sessions that check style, types, packages, faults, right runs, newest releases and GPUs."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import nox
from nox.command import CommandFailed

from common.backends.frameworks import FRAMEWORKS
from sessions import accelerators, environments as python_of, pins as pin_files
from sessions.accelerators import Choice
from sessions.environments import (
    RESULTS,
    available,
    compilation_cache,
    fast_compilation,
    require_known,
)

MOST: Final = 4
"""As many GPUs are used: more show nothing that three do not."""

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


PROMISES: Final = """\
from common.trainers.concise import ByWrapper
from common.trainers.scratch import FromScratch
from frameworks.{0} import collectives, concise, devices, hosts, kernels, replicas, scratch
FromScratch(devices.devices, devices.synchronize, scratch, kernels, collectives)
ByWrapper(hosts.launch, devices.devices, devices.synchronize, concise, replicas)
"""
"""What `frameworks/chapters.py` makes of each framework, which finds its modules by name."""


@nox.session(venv_backend="none")
def typing(session: nox.Session) -> None:
    """Check types, of each backend against its own framework."""
    mypy = [python_of.environment(session, "lint"), "-m", "mypy", "--num-workers=auto"]
    folders = "bench", "common", "notebooks", "planted", "sessions", "silent", "tests"
    session.run(*mypy, *folders, "noxfile.py", "frameworks/chapters.py")
    for framework in available():
        python = python_of.framework(session, framework)
        there = [*mypy, "--python-executable", python]
        session.run(*there, "-p", f"frameworks.{framework}")
        session.run(*there, "-c", PROMISES.format(framework))


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
    uv += [
        f"--python={python_of.environment(session, 'common')}",
        "--python-platform=x86_64-manylinux_2_28",
    ]
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


@nox.session(venv_backend="none")
def faults(session: nox.Session) -> None:
    """Kill runs and their processes, and fill disks; `-- --short`: each kind once."""
    session.env.update(python_of.NO_GPUS)
    short = "--short" in session.posargs
    tests = ["-m", "pytest", "tests/faults", "tests/hosts", "--numprocesses=3"]
    tests += ["--short", "--kills=1"] if short else ["--kills=2"]
    passed = [passes(session, python_of.environment(session, "common"), *tests)]
    for framework in available():
        command = [python_of.framework(session, framework), *tests, "--framework", framework]
        env = fast_compilation(framework) if short else None
        passed.append(passes(session, *command, env=env))
    if not all(passed):
        session.error("tests have failed, see above")


INSTRUCTION_SETS: Final[dict[str, list[dict[str, str]]]] = {
    "pytorch": [
        {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
        {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    ],
    "tensorflow": [{"ONEDNN_MAX_CPU_ISA": "AVX2"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}],
    "jax": [{"XLA_FLAGS": f"--xla_cpu_max_isa={isa}"} for isa in ("AVX2", "SSE4_2")],
    "mxnet": [
        {"OPENBLAS_CORETYPE": "Haswell", "DNNL_MAX_CPU_ISA": "AVX2"},
        {"OPENBLAS_CORETYPE": "Nehalem", "DNNL_MAX_CPU_ISA": "SSE41"},
    ],
}
"""Variables by which frameworks compute as on other processors: they round in another order."""


@nox.session(venv_backend="none")
def right(session: nox.Session) -> None:
    """Make right runs with 20 seeds, of which none may be red; `-- --first=100`: with others."""
    session.env.update(python_of.NO_GPUS)
    passed = []
    for name in available():
        command = [python_of.framework(session, name), "-m", "planted.right", name]
        for variables in ({}, *INSTRUCTION_SETS[name]):
            env = {**compilation_cache(name), **variables}
            some = ["--seeds=2"] if variables else ["--seeds=20", "--quick=5"]
            passed.append(passes(session, *command, *some, *session.posargs, env=env))
    passed.append(passes(session, python_of.environment(session, "common"), "-m", "planted.right"))
    if not all(passed):
        session.error("right runs are red, see above")


def passes(session: nox.Session, *command: str, env: dict[str, str] | None = None) -> bool:
    """Whether a command succeeds."""
    try:
        session.run(*command, env=env)
    except CommandFailed:
        return False
    return True


@nox.session(venv_backend="none")
def newest(session: nox.Session) -> None:
    """Compare the newest releases that pyproject.toml allows; `-- jax`: only JAX."""
    session.env.update(python_of.NO_GPUS)
    chosen = session.posargs or available()
    require_known(session, chosen, FRAMEWORKS)
    if failed := [framework for framework in chosen if not newest_passes(session, framework)]:
        session.error(f"failed: {', '.join(failed)}, see above and {RESULTS / 'newest'}")


def newest_passes(session: nox.Session, framework: str) -> bool:
    """Whether the newest releases of a framework can be installed, and all runs on it pass."""
    name = f"{framework}-{sys.version_info.major}.{sys.version_info.minor}"
    folder, out = python_of.FOLDER / f"newest-{name}", RESULTS / "newest" / name
    shutil.rmtree(out, ignore_errors=True)
    needs = [
        *pin_files.PROJECT["dependencies"],
        *pin_files.PROJECT["optional-dependencies"][framework],
    ]
    python = python_of.made(session, folder)
    install = [*python_of.UV, "pip", "install", f"--python={python}", "--upgrade", *needs]
    prove = [python, "-m", "common.prove", framework, f"--out={out}"]
    return passes(session, *install, env=python_of.settings_of_pip()) and passes(session, *prove)


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """Test, time and compare all on the GPUs here, in results/on-gpus; `-- jax`: JAX only."""
    chosen, out = session.posargs or available(), RESULTS / "on-gpus"
    require_known(session, chosen, FRAMEWORKS)
    choices = [python_of.choice(session, name) for name in chosen]
    timed = pythons_of_bench(session, choices)
    pythons = {x.framework: python_of.chosen(session, x) for x in choices}
    shutil.rmtree(out, ignore_errors=True)
    common, gpus = python_of.environment(session, "common"), f"--gpus={common_gpus(choices)}"
    tests = ["-m", "pytest", "tests/gpu", gpus, "--framework"]
    commands = [[common, "-m", "bench", *timed, gpus, "--rounds=1", f"--out={out}"]]
    commands += [[pythons[x.framework], *tests, x.framework] for x in choices if x.cards]
    named = [f"{framework}={python}" for framework, python in pythons.items()]
    prove = [common, "-m", "common.prove", *named, "--more-devices", f"--out={out}"]
    # If one fails, the others run, too. The comparison is last: its page shows the speeds.
    commands.append([*prove, *on_gpus(choices)])
    passed = [passes(session, *command) for command in commands]
    if not all(passed):
        session.error(f"failed, see above and {out}")


def pythons_of_bench(
    session: nox.Session, choices: Iterable[Choice], *, gpus: bool = True
) -> list[str]:
    """The interpreters of the benchmark; ends the session if `gpus` and no framework has any."""
    timed = [choice for choice in choices if choice.cards or not gpus]
    if not timed:
        session.error("no framework has a GPU here: see the lines above, and docs/gpu.md")
    return [f"--python={x.framework}={python_of.bench(session, x)}" for x in timed]


def common_gpus(choices: Iterable[Choice]) -> int:
    """The number of GPUs that every framework with GPUs can use; 0 without any."""
    return min([MOST, *counts]) if (counts := [len(x.cards) for x in choices if x.cards]) else 0


def on_gpus(choices: Sequence[Choice]) -> list[str]:
    """The flags of the comparison that name the frameworks with runs on GPUs, if any."""
    gpus, without = common_gpus(choices), [x.framework for x in choices if not x.cards]
    return [f"--gpus={gpus}", *(["--without-gpu", *without] if without else [])] if gpus else []
