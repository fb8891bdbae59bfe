"""Builds the site: the chapters with the outputs of their notebooks, docs/, and the reference.

python -m notebooks.site --out results/site    then open results/site/index.html

A link that leads nowhere is an error. No network is needed, neither to build nor to read.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

if not __package__:  # run as a file, as an editor does
    sys.path.insert(0, str(Path(__file__).parents[1]))

from common.base.errors import RequestError, RunError
from common.terminal.command import Parser, status
from common.terminal.values import path
from notebooks.text.chapter import CHAPTERS, SHARED, TEXTS
from notebooks.text.notebook import Notebook, difference, notebook, path_of, read
from notebooks.text.sources import ROOT
from notebooks.web.outputs import block, outputs
from notebooks.web.pages import Framework, download_name, escaped, frameworks_of, page
from notebooks.web.relink import DOCS, SOURCES, linked_files, relinked

LANGUAGES: Final = {".py": "python", ".json": "json", ".toml": "toml", ".yml": "yaml"}
"""By the end of a file's name: how it is coloured."""

MARK: Final = "objects.inv"
"""A file that every site has: a folder with it may be replaced by a new one."""

MEND: Final = "`python -m notebooks.build` and `nox -s notebooks -- --write` make a new one"


def notebook_of(name: str, framework: Framework) -> Notebook:
    """A notebook as it was run. Raises RunError if it is missing, stale or failed."""
    path = path_of(name, framework)
    try:
        if not path.exists():
            raise RunError("it is missing")
        found = read(path)
        if trouble := difference(found, notebook(name, framework)):
            raise RunError(trouble)
        for cell in found.cells:
            outputs(cell)
    except RunError as error:
        raise RunError(f"{path}: {error}; {MEND}") from None
    return found


def write_chapters() -> None:
    """Writes the page of every chapter, and beside it the notebooks to download."""
    place = emptied(DOCS / "chapters")
    for name in (*CHAPTERS, SHARED):
        found = {each: notebook_of(name, each) for each in frameworks_of(name)}
        (place / f"{name}.md").write_text(page(name, found), encoding="utf-8")
        for framework in found:
            shutil.copyfile(path_of(name, framework), place / download_name(name, framework))


def write_sources() -> None:
    """Writes a page for each file of the repository that a page links to."""
    place = emptied(DOCS / SOURCES)
    for file in sorted(linked()):
        made = place / f"{file.relative_to(ROOT)}.md"
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(source_page(file), encoding="utf-8")


def linked() -> set[Path]:
    """The files that pages link to, and those that these link to, if they are texts."""
    waiting = [*DOCS.glob("*.md"), *DOCS.glob("reference/*.md"), *TEXTS.glob("*.md")]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        new = set(linked_files(file.read_text(encoding="utf-8"), file.parent)) - found
        found |= new
        waiting += [each for each in new if each.suffix == ".md"]
    return found


def source_page(file: Path) -> str:
    """A text as a page, or another file as a block of code."""
    name = str(file.relative_to(ROOT))
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return f"---\norphan: true\n---\n\n{relinked(text, file.parent, f'{SOURCES}/{name}')}"
    language = LANGUAGES.get(file.suffix, "text")
    shown = block("code-block", language, text.rstrip("\n"))
    return f"---\norphan: true\n---\n\n# {escaped(name)}\n\n{shown}\n"


def emptied(folder: Path) -> Path:
    """A folder of generated pages, without those of an earlier build."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def require_replaceable(out: Path) -> None:
    """Raises RequestError unless a site may be written there: files of others stay."""
    if out.exists() and not (out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))):
        raise RequestError(f"{out} is no earlier site, and not empty: name another folder")


def build(out: Path) -> None:
    """Runs Sphinx, for which every warning is an error, such as that of a broken link.

    Raises RunError if there is one: then an earlier site is still there.
    """
    from sphinx.cmd.build import build_main

    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as place:
        made, state = Path(place, "site"), Path(place, "state")
        flags = ["-q", "-W", "--keep-going", "-E", "-d", str(state), "-b", "html"]
        if build_main([*flags, str(DOCS), str(made)]):
            raise RunError("Sphinx could not build the site without a warning; see above")
        shutil.rmtree(out, ignore_errors=True)
        made.rename(out)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the site. Returns 0, 1 (a notebook, a page or a link is wrong) or 2."""
    made = Parser(
        prog="python -m notebooks.site",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out, place = Path("results/site"), "where the site goes (%(default)s)"
    made.add_argument("--out", type=path, default=out, metavar="DIR", help=place)
    flags = made.parse_args(argv)
    return status(made.prog, lambda: work(flags.out))


def work(out: Path) -> None:
    """Builds the site in a folder."""
    place = out.resolve()  # a link stays one
    require_replaceable(place)
    write_chapters()
    write_sources()
    build(place)
    print(f"open {out / 'index.html'}")


if __name__ == "__main__":
    raise SystemExit(main())
