"""Compares the frameworks of an environment that you have, on the CPU and on its GPUs.

It needs no network and no nox. Each framework makes the runs of the grid, the tests for GPUs run,
and then all runs are compared. The results go to --out, a folder that can be sent to others.

python -m common.prove
python -m common.prove --python jax=/opt/jax/bin/python --python pytorch=/opt/torch/bin/python
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import IO, Final

from common.backends.frameworks import FRAMEWORKS, framework_and_python, installed
from common.base.errors import RequestError, RunError
from common.base.files import require_writable
from common.base.machine import describe_machine, now, versions
from common.chapters.spec import CHAPTERS
from common.data.download import decide
from common.terminal.command import DEVICES, Parser, count, path, status

NEEDED: Final = ("filelock", "numpy", "pooch", "pydantic", "rich", "safetensors")
"""The packages that every run takes, beside its framework's."""

MOST: Final = 4
"""As many GPUs are used: more show nothing that three do not."""


@dataclass(frozen=True)
class Setup:
    """A framework in a Python, with its GPUs; `untested` says why their tests cannot run."""

    framework: str
    python: str
    version: str
    gpus: int
    packages: Mapping[str, str]
    untested: str

    def __str__(self) -> str:
        packages = ", ".join(map(" ".join, self.packages.items()))
        return f"{self.framework} ({packages}) on Python {self.version}"


def lacks(packages: Iterable[str]) -> str:
    """What this Python is told that lacks some packages; empty if it has all of them."""
    names = " ".join(package for package in packages if find_spec(package) is None)
    return f"this Python lacks {names}: `python -m pip install {names}` adds them" if names else ""


def describe(framework: str) -> None:
    """Prints, as JSON, what this Python has of a framework, or exits and says why it cannot run."""
    from common.backends.interface import ALONE, DeviceRequest
    from common.backends.loading import import_backend, package, placed

    if missing := lacks(NEEDED):
        raise SystemExit(missing)
    try:
        chapters = [import_backend(framework, chapter, 1) for chapter in CHAPTERS]
    except RequestError as error:
        raise SystemExit(str(error)) from None
    gpus, packages = 0, versions(package(framework).DISTRIBUTIONS)
    with suppress(RequestError):  # it sees no GPU
        _, count = placed(framework, "gpu", None)
        gpus = len(chapters[0].devices(ALONE, DeviceRequest(count, "gpu", 1)).local)
    packages = {name: version for name, version in packages.items() if version != "none"}
    about = platform.python_version(), gpus, packages, lacks(("hypothesis", "pytest"))
    print(f"\n{json.dumps(asdict(Setup(framework, sys.executable, *about)))}")


def probe(framework: str, python: str) -> Setup:
    """Asks a Python, in a process of its own, what it has. Raises RequestError if it cannot run."""
    command = [python, "-c", f"from common.prove import describe; describe({framework!r})"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        reason = done.stderr.strip() or f"it ends with status {done.returncode}"
        raise RequestError(f"{framework}: {reason.splitlines()[-1]}")
    answer = json.loads(done.stdout.splitlines()[-1])  # below what a framework may have printed
    return Setup(**answer | {"python": python})


def find(named: Sequence[str], pythons: Mapping[str, str]) -> list[Setup]:
    """The frameworks to compare, each printed. Raises RequestError if a named one cannot run."""
    asked, setups = {*named, *pythons}, []
    for framework in [name for name in FRAMEWORKS if name in (asked or installed())]:
        try:
            setups.append(probe(framework, pythons.get(framework, sys.executable)))
            print(f"{setups[-1]}: {count_gpus(setups[-1].gpus)}", flush=True)
        except RequestError as error:
            if asked:
                raise
            print(f"without {error}", flush=True)
    if not setups:
        example = "--python jax=/opt/jax/bin/python names one that has"
        raise RequestError(f"this Python has no framework that can run: {example}")
    return setups


def count_gpus(gpus: int) -> str:
    return f"{gpus or 'no'} GPU{'s' * (gpus > 1)}"


def limit_gpus(setups: Sequence[Setup], asked: int | None, without: Sequence[str]) -> list[Setup]:
    """Limits the GPUs of each framework. Raises RequestError if one sees too few."""
    seen = {setup.framework: setup.gpus for setup in setups if setup.framework not in without}
    most = min([MOST, *filter(None, seen.values())]) if asked is None else asked
    for framework, gpus in seen.items():
        if gpus < (asked or 0):
            what = f"{framework} sees {gpus} GPUs here, not {asked}"
            how = f"ask for fewer --gpus, or say --without-gpu {framework}"
            raise RequestError(f"{what}: {how}; docs/gpu.md tells why that may be")
    return [replace(setup, gpus=min(most, seen.get(setup.framework, 0))) for setup in setups]


def gpu_flags(gpus: Mapping[str, int]) -> list[str]:
    """The flags of a comparison for the number of GPUs that each framework uses; 0: only CPUs."""
    if not any(gpus.values()):
        return []
    without = [framework for framework, number in gpus.items() if not number]
    return [f"--gpus={max(gpus.values())}", *(["--without-gpu", *without] if without else [])]


def steps(setups: Sequence[Setup], out: Path, more_devices: bool) -> Iterator[list[str]]:
    """All commands: each framework's runs, its tests for GPUs, and the comparison."""
    more = ["--more-devices"] if more_devices else []
    for setup in setups:
        grid = [setup.python, "-m", "common.grid", setup.framework, f"--out={out}"]
        for command in [grid, [*grid, f"--gpus={setup.gpus}"]] if setup.gpus else [grid]:
            yield command
            if more:
                yield [*command, *more]
    for setup in setups:
        if setup.gpus and not setup.untested:
            # A checkout may be read-only.
            pytest = [setup.python, "-m", "pytest", "-p", "no:cacheprovider", "tests/gpu"]
            yield [*pytest, f"--gpus={setup.gpus}", f"--framework={setup.framework}"]
    gpus = {setup.framework: setup.gpus for setup in setups}
    flags = ["--planned", "--frameworks", *gpus, *more, *gpu_flags(gpus)]
    yield [sys.executable, "-m", "common.parity", str(out), *flags]


def passes(command: Sequence[str], log: IO[str]) -> bool:
    """Whether a command ends well; what it prints is shown and logged."""
    print(command_line(command), flush=True)
    print(f"\n{command_line(command)}", file=log, flush=True)
    # A group of its own: a terminal's Ctrl-C does not reach it, and one signal ends all of it.
    running = subprocess.Popen(
        command, stdout=PIPE, stderr=STDOUT, text=True, errors="replace", process_group=0
    )
    try:
        for line in running.stdout or ():
            log.write(line)
            print(line, end="", flush=True)
        running.wait()
    except BaseException:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()
        raise
    if running.returncode:
        print(f"FAILED with status {running.returncode}: see {log.name}", flush=True)
    return running.returncode == 0


def command_line(command: Sequence[str]) -> str:
    return " ".join(["python", *command[1:]])


def prove(flags: argparse.Namespace) -> None:
    out = flags.out
    if missing := lacks(NEEDED):
        raise RequestError(missing)
    require_writable(out)
    setups = find(flags.frameworks, dict(flags.python))
    setups = limit_gpus(setups, flags.gpus, flags.without_gpu)
    out.mkdir(parents=True, exist_ok=True)
    decide()
    with (out / "proof.log").open("w", encoding="utf-8") as log:
        print(now(), describe_machine(), *setups, sep="\n", file=log)
        commands = steps(setups, out, flags.more_devices)
        failed = [command_line(command) for command in commands if not passes(command, log)]
    if failed:
        raise RunError(f"these have failed: {'; '.join(failed)}; see {out}")
    conclude(setups, out)


def conclude(setups: Sequence[Setup], out: Path) -> None:
    for setup in setups:
        on_gpus = f" and {count_gpus(setup.gpus)}" if setup.gpus else ""
        untested = f", without the tests for GPUs: {setup.untested}" if setup.untested else ""
        print(f"passed: {setup}, on CPU devices{on_gpus}{untested if on_gpus else ''}")
    print(f"the results are in {out}")


def parser() -> Parser:
    ends = "exit status: 0: all runs and checks passed; 1: one failed; 2: nothing was started"
    arguments = Parser("python -m common.prove", __doc__, epilog=ends)
    add, every = arguments.add_argument, ", ".join(FRAMEWORKS)
    these = f"only these: {every} (all that this Python has)"
    add("frameworks", type=framework_name, nargs="*", metavar="FRAMEWORK", help=these)
    python = "the Python that has a framework, if it is not this one; once for each framework"
    pair = framework_and_python
    add("--python", type=pair, action="append", default=[], metavar="FRAMEWORK=PYTHON", help=python)
    gpus = "use N GPUs, and require them; 0: only the CPU "
    gpus += f"(as many as each framework sees, at most {MOST})"
    add("--gpus", type=count(DEVICES, least=0), metavar="N", help=gpus)
    on_cpu = "frameworks that are compared only on the CPU"
    add("--without-gpu", choices=FRAMEWORKS, nargs="+", default=(), help=on_cpu)
    more = "runs on 3 and 4 devices, too, where otherwise 1 and 2 are used"
    add("--more-devices", action="store_true", help=more)
    out, place = Path("results/proof"), "the folder for the results (%(default)s)"
    add("--out", type=path, default=out, metavar="DIR", help=place)
    return arguments


def framework_name(text: str) -> str:
    # With `choices`, argparse would refuse an empty list.
    if text not in FRAMEWORKS:
        raise argparse.ArgumentTypeError(f"there is no {text}: choose from {', '.join(FRAMEWORKS)}")
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Runs and compares. Returns 0, 1 (something has failed), 2, 130 or 143."""
    arguments = parser()
    return status(arguments.prog, lambda: prove(arguments.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
