"""Proves an environment that you have: what its frameworks compute, on the CPU and on its GPUs.

It needs no network and no nox. Each framework makes the runs of the grid, the tests for GPUs run,
and then all runs are compared. What comes of it goes to --out, a folder that can be sent to others.

python -m common.prove
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
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

if not __package__:  # run as a file, as an editor does
    sys.path.insert(0, str(Path(__file__).parents[1]))

from common.backends.devices import ALONE, DeviceRequest
from common.backends.driver import Driver, find_driver, in_words
from common.backends.frameworks import FRAMEWORKS, framework_and_python, installed
from common.base.errors import RequestError, RunError
from common.base.files import require_writable, write_text
from common.base.machine import describe_machine, now
from common.base.signals import interruptible
from common.chapters.chapters import CHAPTERS
from common.grid import commands
from common.terminal.command import Parser, status
from common.terminal.values import DEVICES, count, path

NEEDED: Final = ("numpy", "pooch", "pydantic", "rich", "safetensors")
"""The packages that every run takes, beside its framework's."""

FOR_TESTS: Final = ("hypothesis", "pytest")
"""The packages that the tests take beside these."""

MOST: Final = 4
"""As many GPUs are used: more show nothing that three do not."""

EXAMPLES: Final = """\
examples:
  python -m common.prove
      every framework that this Python has, on CPU devices and on the GPUs that it sees
  python -m common.prove jax --gpus 0 --out /scratch/me/proof
      JAX alone, on the CPU alone; where this folder is read-only, --out is not
  python -m common.prove --python jax=/opt/jax/bin/python --python pytorch=/opt/torch/bin/python
      two environments, compared with each other

exit status: 0: everything that it has named has passed; 1: something has not; 2: it cannot be begun
"""


@dataclass(frozen=True)
class Found:
    """What a Python has of a framework; `trouble` says why it cannot run it.

    `version` is Python's. Of all `packages`, `own` are the framework's. The tests lack `untested`.
    """

    framework: str
    python: str
    trouble: str = ""
    version: str = ""
    gpus: int = 0
    own: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    untested: Sequence[str] = ()

    def __str__(self) -> str:
        """The framework and its versions, in words."""
        listed = ", ".join(f"{name} {version}" for name, version in self.own.items())
        return f"{self.framework} ({listed}) on Python {self.version}"


@dataclass(frozen=True)
class Step:
    """A command, and how many runs it makes."""

    command: Sequence[str]
    runs: int = 0

    def __str__(self) -> str:
        """The command as a person would give it."""
        return " ".join(["python", *self.command[1:]])


def tell(framework: str) -> None:
    """Prints, as JSON, what this Python has of a framework."""
    missing, told = lacks(NEEDED), dict[str, Any]()
    told |= {"trouble": f"this Python {without(missing)}"} if missing else load(framework)
    told |= {"version": platform.python_version(), "untested": lacks(FOR_TESTS)}
    # As they are asked for, and not as the one or the other installer writes them.
    told["packages"] = {each.name.replace("_", "-"): each.version for each in distributions()}
    print(f"\n{json.dumps(told)}")  # a framework may have said something before


def lacks(packages: Iterable[str]) -> list[str]:
    """Those of the packages that this Python does not have."""
    return [each for each in packages if find_spec(each) is None]


def without(packages: Sequence[str]) -> str:
    """What a Python is told that lacks some packages."""
    names = " ".join(packages)
    return f"lacks {names}: `python -m pip install {names}` adds them"


def load(framework: str) -> dict[str, Any]:
    """Loads all that runs load; why that fails, or how many GPUs there are, and the versions."""
    from common.backends.loading import distributions, import_backend

    try:
        backends = [import_backend(framework, chapter, 1) for chapter in CHAPTERS]
    except RequestError as error:
        return {"trouble": str(error)}
    own, gpus = dict[str, str](), 0
    for name in distributions(framework):
        with suppress(PackageNotFoundError):
            own[name] = version(name)
    with suppress(RequestError):  # it sees none
        gpus = len(backends[0].devices(ALONE, DeviceRequest(None, "gpu", 1)).names)
    return {"gpus": gpus, "own": own}


def ask(framework: str, python: str) -> Found:
    """What a Python has of a framework: it is asked in a process of its own."""
    code = f"from common.prove import tell; tell({framework!r})"
    asked = [python, "-c", code]
    done = subprocess.run(asked, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"it ends with status {done.returncode}"]
        return Found(framework, python, said[-1])
    return Found(framework, python, **json.loads(done.stdout.splitlines()[-1]))


def find(named: Sequence[str], pythons: Mapping[str, str]) -> list[Found]:
    """The frameworks to prove, once they are told of. Raises RequestError if there are none."""
    chosen = {*named, *pythons} or {*installed()}
    found = []
    for framework in (each for each in FRAMEWORKS if each in chosen):
        each = ask(framework, pythons.get(framework, sys.executable))
        if not each.trouble:
            print(f"{each}: {seen(each)}", flush=True)
            found.append(each)
        elif framework in {*named, *pythons}:
            raise RequestError(f"{framework}: {each.trouble}")
        else:
            print(f"without {framework}: {each.trouble}", flush=True)
    if not found:
        raise RequestError(
            "this Python has no framework that can run: "
            "--python jax=/opt/jax/bin/python names one that has"
        )
    return found


def seen(found: Found) -> str:
    """How many GPUs a framework sees, in words."""
    if found.gpus:
        return f"{found.gpus} GPU{'s' * (found.gpus > 1)}"
    driver = find_driver(os.environ.get("CUDA_VISIBLE_DEVICES"))
    if isinstance(driver, Driver):
        return f"it sees no GPU, though there is {in_words(driver.cards)}: docs/gpu.md tells why"
    return "no GPU"


def gpus_for(found: Sequence[Found], asked: int | None, without: Sequence[str]) -> int:
    """How many GPUs to use. Raises RequestError if a framework does not see as many as asked."""
    counts = {each.framework: each.gpus for each in found if each.framework not in without}
    if asked is None:
        return min(MOST, min((n for n in counts.values() if n), default=0))
    for framework, number in counts.items():
        if number < asked:
            raise RequestError(
                f"{framework} sees {number} GPUs here, not {asked}: ask for fewer --gpus, or say "
                f"--without-gpu {framework}; docs/gpu.md tells why that may be"
            )
    return asked if counts else 0


def grids(found: Iterable[Found], out: Path, more_devices: bool) -> Iterator[Step]:
    """The runs of each framework, on the CPU and, where it has any, on GPUs."""
    for each in found:
        for number in sorted({0, each.gpus}):
            for more in (False, True)[: 1 + more_devices]:
                made = commands(each.framework, out, more_devices=more, gpus=number)
                if made:
                    flags = [f"--gpus={number}"] * bool(number) + ["--more-devices"] * more
                    grid = [each.python, "-m", "common.grid", each.framework, f"--out={out}"]
                    yield Step([*grid, *flags], len(made))


def tests(found: Iterable[Found]) -> Iterator[Step]:
    """The tests for GPUs, of each framework that has some and whose Python can run them."""
    for each in (each for each in found if each.gpus and not each.untested):
        # A checkout may be read-only.
        pytest = [each.python, "-m", "pytest", "-p", "no:cacheprovider", "tests/gpu"]
        yield Step([*pytest, f"--gpus={each.gpus}", f"--framework={each.framework}"])


def comparison(found: Sequence[Found], out: Path, more_devices: bool) -> list[str]:
    """What the comparison of these runs is told."""
    flags = [str(out), "--suites", "--frameworks", *(each.framework for each in found)]
    flags += ["--more-devices"] * more_devices
    without = [each.framework for each in found if not each.gpus]
    if gpus := max(each.gpus for each in found):
        flags += [f"--gpus={gpus}", *(["--without-gpu", *without] if without else [])]
    return flags


def passes(step: Step, log: IO[str], progress: Iterator[str]) -> bool:
    """Whether a command ends well. What it says goes into the log; of runs, a line each is shown.

    Whatever ends this process in order ends the command, too, and all that it has started.
    """
    print(step, flush=True)
    print(f"\n{step}", file=log, flush=True)
    said: list[str] = []
    # A group of its own: a terminal's Ctrl-C does not reach it, and one signal ends all of it.
    running = subprocess.Popen(
        step.command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    )
    try:
        for line in running.stdout or ():
            log.write(line)
            said = [*said[-9:], line.rstrip()]
            if not step.runs:
                print(line, end="", flush=True)
            elif line.startswith("python -m frameworks.") and ": error: " not in line:
                print(f"{next(progress)} {line.split(maxsplit=2)[2].rstrip()}", flush=True)
        running.wait()
    except BaseException:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()
        raise
    if running.returncode:
        told = said if step.runs else []  # else it is there already
        print("\n".join([*told, f"FAILED with status {running.returncode}"]), flush=True)
    return running.returncode == 0


def prove(flags: argparse.Namespace) -> None:
    """Does it all. Raises RequestError before anything is written, and RunError in the end."""
    out, more = flags.out, flags.more_devices
    if missing := lacks(NEEDED):
        raise RequestError(f"this Python {without(missing)}")
    require_writable(out)
    found = find(flags.frameworks, dict(flags.python))
    gpus = gpus_for(found, flags.gpus, flags.without_gpu)
    on_cpu = [each.framework for each in found if not each.gpus] + [*flags.without_gpu]
    found = [replace(each, gpus=0 if each.framework in on_cpu else gpus) for each in found]
    compare = [sys.executable, "-m", "common.parity", *comparison(found, out, more)]
    steps = [*grids(found, out, more), *tests(found), Step(compare)]
    runs = sum(step.runs for step in steps)
    print(f"{runs} runs on {devices(gpus)}, then the comparison; all goes to {out}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "proof.json").unlink(missing_ok=True)  # a verdict must not outlive a later proof
    progress = (f"{number}/{runs}" for number in range(1, runs + 1))
    with (out / "proof.log").open("w", encoding="utf-8") as log:
        done = {str(step): passes(step, log, progress) for step in steps}
    conclude(found, done, out)


def conclude(found: Sequence[Found], done: Mapping[str, bool], out: Path) -> None:
    """Writes and prints the verdict. Raises RunError if a command has failed."""
    told = {"passed": all(done.values()), "ended": now(), "machine": describe_machine()}
    told["frameworks"] = [asdict(each) for each in found]
    told["commands"] = done
    write_text(out / "proof.json", json.dumps(told, indent=2) + "\n")
    for each in found:
        if each.gpus and each.untested:
            why = f"the Python of {each.framework} {without(each.untested)}"
            print(f"the tests for GPUs were not run: {why}")
    if failed := [command for command, passed in done.items() if not passed]:
        raise RunError(f"not proven, as these have failed: {'; '.join(failed)}; see {out}")
    for each in found:
        print(f"proven: {each}, on {devices(each.gpus)}")
    print(f"{out} has all of it")


def devices(gpus: int) -> str:
    """The devices of a proof, in words."""
    return f"CPU devices and {gpus} GPU{'s' * (gpus > 1)}" if gpus else "CPU devices"


def parser() -> Parser:
    """The command line."""
    made = Parser(
        prog="python -m common.prove",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "frameworks",
        type=known,
        nargs="*",
        metavar="FRAMEWORK",
        help=f"these alone: {', '.join(FRAMEWORKS)} (all that this Python has)",
    )
    made.add_argument(
        "--python",
        type=framework_and_python,
        action="append",
        default=[],
        metavar="FRAMEWORK=PYTHON",
        help="the Python that has a framework, if it is not this one; once for each framework",
    )
    made.add_argument(
        "--gpus",
        type=count(DEVICES, least=0),
        metavar="N",
        help="use N GPUs, and require them; 0: the CPU alone "
        f"(as many as each framework sees, at most {MOST})",
    )
    made.add_argument(
        "--without-gpu",
        type=known,
        nargs="+",
        default=(),
        metavar="FRAMEWORK",
        help="frameworks that are proven on the CPU alone",
    )
    more = "runs on 3 and 4 devices, too, where otherwise 1 and 2 are used"
    made.add_argument("--more-devices", action="store_true", help=more)
    out, place = Path("results/proof"), "the folder for all that it leaves (%(default)s)"
    made.add_argument("--out", type=path, default=out, metavar="DIR", help=place)
    return made


def known(text: str) -> str:
    """A framework's name."""
    if text not in FRAMEWORKS:
        known = ", ".join(FRAMEWORKS)
        raise argparse.ArgumentTypeError(f"there is no {text!r}: choose from {known}")
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Proves what is asked for. Returns 0, 1 (something has failed), 2, 130 or 143."""
    made = parser()
    flags = made.parse_args(argv)

    def work() -> None:
        with interruptible(signal.SIGTERM, signal.SIGHUP):
            prove(flags)

    return status(made.prog, work)


if __name__ == "__main__":
    raise SystemExit(main())
