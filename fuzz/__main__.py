"""Gives a reader damaged files, led by Atheris to code of the reader that none has reached yet.

python -m fuzz run --inputs 1000000 --seed 1

It ends after so many files, or with status 1 at the first that the reader neither reads nor
refuses. Without a reader, each has its turn.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import atheris
from hypothesis import HealthCheck, given, settings

# Atheris is led by what is reached of these packages, if they are imported here.
with redirect_stderr(StringIO()), atheris.instrument_imports(["common", "bench", "safetensors"]):
    from common.base.children import end_with
    from fuzz.targets import DISK, TARGETS
    from fuzz.watch import Watch


def main() -> int:
    """Gives the files. Returns 0, or 1 if a reader has done something wrong."""
    prog, form = "python -m fuzz", argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, formatter_class=form)
    parser.add_argument("reader", nargs="?", choices=TARGETS, help="this one alone")
    most = "files for each reader (%(default)s)"
    parser.add_argument("--inputs", type=int, default=1_000_000, metavar="N", help=most)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(%(default)s)")
    flags = parser.parse_args()
    if flags.reader:
        fuzz(flags.reader, flags.inputs, flags.seed)
    same = [f"--inputs={flags.inputs}", f"--seed={flags.seed}"]
    # A process for each: Atheris never returns, and a library may crash.
    commands = [[sys.executable, "-m", "fuzz", each, *same] for each in TARGETS]
    statuses = [subprocess.run(each, check=False).returncode for each in commands]
    return int(any(statuses))


def fuzz(reader: str, inputs: int, seed: int) -> None:
    """Gives a reader so many files, and ends the process; the last files stay if they harm it."""
    end_with(os.getppid())
    begun, target, done = time.monotonic(), TARGETS[reader], 0
    outside = Path(mkdtemp(dir=DISK, prefix=f"fuzz-{reader}-"))
    (outside / "outside.safetensors").write_bytes(b"no reader opens this")
    folder = outside / "files"
    folder.mkdir()
    print(f"{reader}: the files are in {folder}", flush=True)
    warnings.simplefilter("error")  # what a command would print, in the midst of its answer
    watch = Watch(folder)

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(target.hostile())
    def one(files: tuple[bytes, ...]) -> None:
        nonlocal done
        done += 1
        wrong = target.check(files, folder, watch)
        if wrong or done == inputs:
            seconds = time.monotonic() - begun
            told = wrong or "no finding"
            print(f"{reader}: {done:,} inputs in {seconds:,.0f} s; {told}", flush=True)
            if not wrong:
                shutil.rmtree(outside)
            os._exit(bool(wrong))

    test: Any = one
    limits = ["-timeout=60", "-max_len=4096", "-len_control=0", "-reduce_inputs=0"]
    arguments = [sys.argv[0], "-runs=-1", f"-seed={seed}", "-verbosity=0", *limits]
    atheris.Setup(arguments, test.hypothesis.fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    raise SystemExit(main())
