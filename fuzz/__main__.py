"""Gives readers hostile files, led by what of the code they reach, and says what came of it.

python -m fuzz run safetensors --inputs 1000000 --seed 1
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from common.base.errors import RequestError, RunError
from common.base.files import require_file, write_text
from common.base.machine import describe_machine, now
from common.base.signals import interruptible
from common.terminal.command import Parser, status
from common.terminal.values import COUNT, LARGEST_SEED, count, seed as a_seed

READERS: Final = ("bench", "checkpoint", "messages", "run", "safetensors", "scaling", "seeds")
"""The names of `fuzz.targets`, which takes a while to load."""

MEMORY: Final = Path("/dev/shm")
"""A folder in memory, where there is one: each input is a file."""


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the files. Returns 0, 1 (something was found), 2 (a bad request), 130 or 143."""
    prog, form = "python -m fuzz", argparse.RawDescriptionHelpFormatter
    made = Parser(prog=prog, description=__doc__, allow_abbrev=False, formatter_class=form)
    add = made.add_argument
    some = f"some of {', '.join(READERS)} (all)"
    # With `choices`, argparse refuses that none is named.
    add("readers", nargs="*", type=a_reader, metavar="READER", help=some)
    add("--inputs", type=count(COUNT), default=1_000_000, metavar="N", help="(%(default)s)")
    add("--seed", type=a_seed, default=1, metavar="N", help=f"up to {LARGEST_SEED} (%(default)s)")
    add("--out", type=Path, default=Path("results/fuzz"), metavar="DIR", help="(%(default)s)")
    flags = made.parse_args(argv)
    with interruptible(signal.SIGTERM):
        return status(prog, lambda: work(flags))


def work(flags: argparse.Namespace) -> None:
    """Fuzzes each reader in turn. Raises RequestError, or RunError with what was found."""
    if find_spec("atheris") is None:
        raise RequestError("Atheris is not installed here: install the extra `fuzz`")
    readers = flags.readers or READERS
    for reader in readers:
        require_file(flags.out / f"{reader}.json", "--out")
    found = []
    for reader in readers:
        figures = fuzz(reader, flags.inputs, flags.seed, flags.out)
        write_text(flags.out / f"{reader}.json", json.dumps(figures, indent=2) + "\n")
        told = "; ".join(figures["findings"]) or 0
        count, seconds = figures["inputs"], figures["seconds"]
        print(f"{reader}: {count:,} inputs in {seconds:,.0f} s, findings: {told}", flush=True)
        found += figures["findings"]
    if found:
        raise RunError(f"found: {'; '.join(found)}")


def fuzz(reader: str, inputs: int, seed: int, out: Path) -> dict[str, Any]:
    """What came of giving a reader so many inputs; the files of a finding are kept in `out`."""
    begun = time.perf_counter()
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        command = [sys.executable, "-m", "fuzz.guided", reader, name, str(inputs), str(seed)]
        done = subprocess.run(command, check=False)
        path = Path(name) / "told.json"
        told = json.loads(path.read_text()) if path.is_file() else {"inputs": 0, "wrong": ""}
        findings = []
        if done.returncode:
            kept = out / f"{reader}-finding"
            shutil.copytree(Path(name) / "files", kept, dirs_exist_ok=True)
            why = told["wrong"] or f"its process has ended with {done.returncode}"
            findings.append(f"{reader}: {why} ({kept})")
    machine = describe_machine()
    return {
        "reader": reader,
        "inputs": told["inputs"],
        "seed": seed,
        "seconds": round(time.perf_counter() - begun, 1),
        "findings": findings,
        "date": now()[:10],
        "machine": f"{machine['processor']}, {machine['cores']} cores",
    }


def a_reader(text: str) -> str:
    """The name of a reader. Raises ArgumentTypeError if there is none."""
    if text not in READERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(READERS)}")
    return text


if __name__ == "__main__":
    raise SystemExit(status("python -m fuzz", main))
