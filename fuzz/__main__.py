"""Gives readers hostile files, led by what of the code they reach, and says what came of it.

python -m fuzz idx safetensors --inputs 1000000 --seed 1
"""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
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

READERS: Final = ("idx", "safetensors", "record", "run", "checkpoint", "bench")
"""The names of `fuzz.targets`."""

MEMORY: Final = Path("/dev/shm")
"""A folder in memory, where there is one: each input is a file."""

PROGRESS: Final = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/\S+ .*rss: (\d+)Mb")
"""What the fuzzer prints now and then: inputs, edges and features reached, inputs kept, memory."""


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the files. Returns 0, 1 (something was found), 2 (a bad request), 130 or 143."""
    made = parser()
    flags = made.parse_args(argv)
    with interruptible(signal.SIGTERM):
        return status(made.prog, lambda: work(flags))


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
        print(line(figures), flush=True)
        found += figures["findings"]
    if found:
        raise RunError(f"found: {'; '.join(found)}")


def fuzz(reader: str, inputs: int, seed: int, out: Path) -> dict[str, Any]:
    """What came of giving a reader so many inputs; one that is a finding is kept in `out`."""
    begun = time.perf_counter()
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        command = [sys.executable, "-m", "fuzz.guided", reader, name, str(inputs), str(seed)]
        status, told = heard(command, reader)
        findings = list(kept(reader, Path(name), out, told)) if status else []
    last = [figures for text in told if (figures := progress(text))]
    machine = describe_machine()
    return {
        "reader": reader,
        **(last[-1] if last else {"inputs": 0}),
        "seed": seed,
        "seconds": round(time.perf_counter() - begun, 1),
        "findings": findings,
        "date": now()[:10],
        "machine": f"{machine['processor']}, {machine['cores']} cores",
        "versions": {
            name: version(name) for name in ("atheris", "numpy", "pydantic", "safetensors")
        },
    }


def heard(command: Sequence[str], reader: str) -> tuple[int, list[str]]:
    """The exit status of the fuzzer, and what it said; it ends with this process."""
    told = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            for text in process.stderr or ():
                told.append(text.strip())
                if "pulse" in text and (found := progress(text)):
                    line = f"{reader}: {found['inputs']:,} inputs, {found['edges']} edges"
                    print(line, file=sys.stderr, flush=True)
        except BaseException:
            process.kill()
            raise
    return process.returncode, told


def progress(text: str) -> dict[str, int]:
    """The figures in a line of the fuzzer, if it has them."""
    names = ("inputs", "edges", "features", "corpus", "peak_mib")
    match = PROGRESS.match(text)
    return dict(zip(names, map(int, match.groups()), strict=True)) if match else {}


def kept(reader: str, folder: Path, out: Path, told: Sequence[str]) -> Iterator[str]:
    """Why the fuzzer ended, and where the input is that was its end."""
    reasons = [text for text in told if re.search(r"Error: |ERROR: ", text)]
    why = (reasons or list(told)[-1:] or ["it said nothing"])[0]
    files = [path for path in folder.iterdir() if re.match("crash-|timeout-|oom-", path.name)]
    out.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copyfile(path, out / f"{reader}-{path.name}")
        yield f"{reader}: {why} ({out / f'{reader}-{path.name}'})"
    if not files:
        yield f"{reader}: the fuzzer ended: {why}"


def line(figures: dict[str, Any]) -> str:
    """The figures of a reader in a line."""
    found = "; ".join(figures["findings"]) or 0
    return (
        f"{figures['reader']}: {figures['inputs']:,} inputs in {figures['seconds']:,.0f} s, "
        f"{figures.get('edges', 0)} edges reached, findings: {found}"
    )


def a_reader(text: str) -> str:
    """The name of a reader. Raises ArgumentTypeError if there is none."""
    if text not in READERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(READERS)}")
    return text


def parser() -> Parser:
    """The command line."""
    made = Parser(
        prog="python -m fuzz",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    some = f"some of {', '.join(READERS)} (all)"
    # With `choices`, argparse refuses that none is named.
    add("readers", nargs="*", type=a_reader, metavar="READER", help=some)
    add("--inputs", type=count(COUNT), default=1_000_000, metavar="N", help="(%(default)s)")
    add("--seed", type=a_seed, default=1, metavar="N", help=f"up to {LARGEST_SEED} (%(default)s)")
    add("--out", type=Path, default=Path("results/fuzz"), metavar="DIR", help="(%(default)s)")
    return made


if __name__ == "__main__":
    raise SystemExit(status("python -m fuzz", main))
