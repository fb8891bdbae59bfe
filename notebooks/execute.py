"""Runs the notebooks of a framework, in an environment that has it and Jupyter.

python -m notebooks.execute jax            run them; results/notebooks gets copies with outputs
python -m notebooks.execute jax --write    keep the outputs in notebooks/jax, too
python -m notebooks.execute parity         the chapter that has one notebook for all

It fails if a cell raises an error or writes to standard error, as a warning does.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.base.files import require_writable, write_text
from common.base.machine import describe_machine, now
from common.terminal.command import Parser, path, status
from notebooks.text import notebook as files
from notebooks.text.chapter import CHAPTERS, SHARED

TIMEOUT: Final = 600
"""Seconds that one cell may take."""


def run(name: str, framework: str | None, out: Path, *, keep: bool) -> None:
    """Runs one notebook in its folder and writes it with its outputs, also if it failed.

    Raises RunError that names the cell that failed.
    """
    nb, path = files.notebook(name, framework), files.path_of(name, framework)
    title, started = framework or "all", time.monotonic()
    copy = out / (framework or "") / path.name
    path.parent.mkdir(parents=True, exist_ok=True)
    client = NotebookClient(
        nb,
        timeout=TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    problem = ""
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        problem = str(error)
    if problem := failure(nb) or problem:
        write_text(copy, files.text_of(nb))
        raise RunError(f"{title} {name}: {problem}; see {copy}")
    nb = nbformat.reads(nbformat.writes(nb), as_version=4)
    where = {"date": now()[:10], "machine": str(describe_machine()["processor"])}
    nb.metadata["executed"] = nbformat.from_dict(files.digests(nb) | where)
    write_text(copy, files.text_of(nb))
    if keep:  # without what the kernel says of itself, and as if pictures were not run
        write_text(path, files.text_of(files.with_outputs(name, framework, copy)))
    print(f"{title}: {name}, {time.monotonic() - started:.0f} s, no error", flush=True)


def failure(nb: files.Notebook) -> str:
    """The first error or output to standard error, with its cell; empty if none."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell {cell.id}: {output.ename}: {output.evalue}"
            if output.get("name") == "stderr":
                return f"cell {cell.id} wrote to standard error: {output.text.strip()}"
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs notebooks. Returns 0, 1 (a cell failed) or 2."""
    parser = Parser("python -m notebooks.execute", __doc__)
    parser.add_argument("framework", choices=[*FRAMEWORKS, SHARED], help="whose notebooks")
    parser.add_argument("--chapter", choices=CHAPTERS, help="only this one")
    parser.add_argument("--write", action="store_true", help="keep the outputs in notebooks/")
    out, copies = Path("results/notebooks"), "where the copies go (%(default)s)"
    parser.add_argument("--out", type=path, default=out, metavar="DIR", help=copies)
    flags = parser.parse_args(argv)

    def work() -> None:
        require_writable(flags.out)
        notebooks = [pair for pair in files.NOTEBOOKS if flags.framework in pair]
        chosen = [(name, of) for name, of in notebooks if flags.chapter in (None, name)]
        if not chosen:
            raise RequestError(f"{flags.framework} has no chapter {flags.chapter}")
        for name, of in chosen:
            run(name, of, flags.out, keep=flags.write)

    return status(parser.prog, work)


if __name__ == "__main__":
    raise SystemExit(main())
