"""Is your own code right? Compares a function, or an object, of a Python file with NumPy.

Prints the verdict, a hint, and what was not tried. `python -m common.judge step --help` explains
one kind.

python -m common.judge allreduce mine.py:my_allreduce
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.children import messages
from common.base.errors import RequestError
from common.judge.judgement import TEXTS, in_framework, judge
from common.terminal.command import Parser, above_zero, status

TENSORS: Final = ("allreduce", "layer", "step", "model")

FOR: Final = {"framework": TENSORS, "dtype": TENSORS, "net": TENSORS[2:], "clip": ("step",)}
"""The kinds for which a flag means something."""


def parser(kinds: Sequence[str]) -> Parser:
    protocols = "\n".join(TEXTS[kind]["protocol"] for kind in kinds)
    epilog = f"{protocols}\nexit status: 0: right; 1: wrong; 2: it could not be judged"
    command = Parser("python -m common.judge", __doc__, epilog=epilog)
    add = command.add_argument
    add("kind", choices=TEXTS, metavar="KIND", help=f"what it is: {', '.join(TEXTS)}")
    add("file", metavar="FILE[:NAME]", help="where it is (NAME: the name of the kind)")
    add("--framework", choices=FRAMEWORKS, help="hand its tensors, on simulated devices")
    add("--dtype", choices=("float32", "float64"), help="(float64; allreduce: both)")
    add("--net", choices=("lenet", "resnet18", "gpt"), help="the net of `step` and `model` (lenet)")
    add("--clip", type=above_zero, metavar="N", help="the global norm by which `step` clips")
    add("--timeout", type=above_zero, default=60.0, metavar="S", help="seconds it may take (60)")
    return command


def work(tell: Callable[..., None], kind: str, where: str, asked: dict[str, Any]) -> None:
    """Tells of each case before it is judged, and in the end a status and a text."""
    sys.dont_write_bytecode = True
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait by spinning
    from common.judge.readers import load

    try:
        setting = in_framework(asked.pop("framework", None), **asked)
        file, _, name = where.rpartition(":") if ":" in where else (where, "", kind)
        candidate = load(Path(file), name)
        judgement = judge(kind, candidate, setting, lambda case: tell(None, case))
        tell(int(not judgement.right), judgement.text)
    except Exception as error:
        foreseen = isinstance(error, RequestError)
        tell(2, str(error) if foreseen else f"the judge failed: {error!r}")


def run(flags: argparse.Namespace) -> int:
    """Judges in a process of its own. Returns 0 or 1; raises RequestError."""
    asked = {name: getattr(flags, name) for name in FOR if getattr(flags, name)}
    for name in asked:
        if flags.kind not in FOR[name]:
            raise RequestError(f"--{name} means nothing for {flags.kind}")
    answer: list[Any] = [None, ""]
    failed, seconds = "the code ended its process", min(flags.timeout, 1e6)
    try:
        for answer in messages(work, flags.kind, flags.file, asked, seconds=seconds):
            if answer[0] is not None:
                break
    except TimeoutError:
        failed = f"no answer after {flags.timeout:g} seconds (--timeout)"
    code, text = answer
    if code not in (0, 1):
        raise RequestError(text if code else f"{text}{failed}")
    print(text)
    return int(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns 0 (right), 1 (wrong), 2 (not judged) or 130."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = parser([kind for kind in TEXTS if kind in words] or list(TEXTS))
    return status(command.prog, lambda: run(command.parse_args(words)))


if __name__ == "__main__":
    raise SystemExit(main())
