"""Compares the records of a folder and tells whether the frameworks computed the same.

python -m common.parity results

Or compares two files, and tells where they begin to diverge: two records, or two files of weights.

python -m common.parity mine.safetensors theirs.safetensors
"""

if __name__ == "__main__":
    import os

    # Read when NumPy is loaded: runs are computed again several at a time, each on one core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from common.base.errors import RequestError
from common.base.files import write_text
from common.compare.arguments import gpus_of, parser, two_files
from common.compare.folder import examine, verdict_on
from common.compare.layerwise import LayerTable, layer_tables, require_layers
from common.compare.suite import SuiteResult, Verdict

PAGE_NEEDS: Final = ("jinja2", "matplotlib")
"""What the page alone takes; frameworks' environments do not have it."""


def write_page(
    folder: Path,
    verdict: Verdict,
    examined: Sequence[SuiteResult],
    layered: Sequence[LayerTable],
) -> bool:
    """Writes `parity.html` to `folder`; returns whether it can be made in this environment."""
    try:
        from common.report.page import page

        write_text(folder / "parity.html", page(folder, verdict, examined, layered))
    except ModuleNotFoundError as missing:
        if missing.name not in PAGE_NEEDS:
            raise
        return False
    return True


def leave(
    folder: Path,
    verdict: Verdict,
    examined: Sequence[SuiteResult],
    layered: Sequence[LayerTable],
) -> bool:
    """Writes the verdict and its page; says what cannot be written.

    Returns whether the page can be made in this environment, as far as is known.
    """
    from common.report.text import VERDICT_FILES, write_verdict

    try:
        write_verdict(folder, verdict)
        return write_page(folder, verdict, examined, layered)
    except (RequestError, OSError) as error:
        unwritten = f"the verdict is only printed: {error}"
        if any((folder / name).exists() for name in VERDICT_FILES):
            unwritten += "; the files there are of an earlier comparison"
        print(f"python -m common.parity: {unwritten}", file=sys.stderr)
        return True


def without_page(folder: Path, words: Sequence[str], removed: bool) -> str:
    """What to say where no page was made of a folder, which these words of a command name."""
    others = [word for word in words if word.startswith("-") or Path(word) != folder]
    command = shlex.join(["nox", "-s", "parity", "--", str(folder), *others])
    was = " (the one that was there is out of date, and removed)" if removed else ""
    return f"no {folder / 'parity.html'}{was}: {' and '.join(PAGE_NEEDS)} make it: {command}"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table and writes it as JSON, Markdown and a page. Returns 0, 1 (failed) or 2.

    Of two files, it prints the table alone. What cannot be written is said, and changes no verdict.
    """
    made = parser(__doc__)
    flags = made.parse_intermixed_args(argv)
    if two_files(made, flags):
        from common.report.two_files import report

        return report(flags.folder, flags.second, flags.tolerance)
    from common.report.layers import report_layers
    from common.report.text import print_verdict, withdraw_verdict

    removed = withdraw_verdict(flags.folder)
    try:
        examined = examine(
            flags.folder,
            frameworks=flags.frameworks,
            chapters=flags.chapters,
            suites=flags.suites,
            more_devices=flags.more_devices,
            over_hosts=flags.over_hosts,
            gpus=gpus_of(flags),
        )
        verdict = verdict_on(examined)
        layered = layer_tables(examined)
        if flags.layers:
            require_layers(layered)
    except (RequestError, OSError) as error:
        print(f"python -m common.parity: error: {error}", file=sys.stderr)
        return 2
    made_page = leave(flags.folder, verdict, examined, layered)
    print_verdict(verdict)
    together = not flags.layers or report_layers(layered)
    if not made_page:
        words = sys.argv[1:] if argv is None else argv
        print(without_page(flags.folder, words, "parity.html" in removed))
    return 0 if verdict.passed and together else 1


if __name__ == "__main__":
    from common.terminal.command import status

    raise SystemExit(status("python -m common.parity", main))
