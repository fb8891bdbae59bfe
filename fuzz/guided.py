"""One reader under Atheris, in a process of its own: it is led to what no input has reached yet.

It ends with the process that has started it, with a finding, or after so many inputs.
"""

import json
import os
import sys
import warnings
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import atheris
from hypothesis import HealthCheck, given, settings

from common.base.children import end_with


def main(reader: str, folder: Path, inputs: int, seed: int) -> None:
    """Reads so many inputs, in `files` below `folder`; `told.json` there says what came of them."""
    end_with(os.getppid())
    # Only what is imported meanwhile tells what of it is reached.
    include = ["common", "bench", "safetensors"]
    with redirect_stderr(StringIO()), atheris.instrument_imports(include):
        from fuzz.targets import TARGETS
        from fuzz.watch import Watch
    target, place, done = TARGETS[reader], folder / "files", 0
    place.mkdir()
    (folder / "outside.safetensors").write_bytes(b"no reader opens this")
    warnings.simplefilter("error")  # what a command would print, in the midst of its answer
    watch = Watch(place)

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(target.hostile())
    def one(files: tuple[bytes, ...]) -> None:
        nonlocal done
        done += 1
        wrong = target.check(files, place, watch)
        if wrong or done == inputs or (done & (done - 1) == 0 and done > 1000):
            print(f"{reader}: {done:,} inputs", file=sys.stderr, flush=True)
            (folder / "told.json").write_text(json.dumps({"inputs": done, "wrong": wrong}))
        if wrong or done == inputs:
            os._exit(bool(wrong))

    test: Any = one
    limits = ["-timeout=60", "-max_len=4096", "-len_control=0", "-reduce_inputs=0"]
    flags = [sys.argv[0], "-runs=-1", f"-seed={seed}", "-verbosity=0", *limits]
    atheris.Setup(flags, test.hypothesis.fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
