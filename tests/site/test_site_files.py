"""From texts and notebooks to pages: links between files, and what of a notebook cannot be used."""

from pathlib import Path

import pytest
from small_chapter import NAME, TEXT, ran, stream

from common.base.errors import RunError
from notebooks import site
from notebooks.text import chapter, notebook as files
from notebooks.text.notebook import write
from notebooks.text.sources import ROOT
from notebooks.web.relink import relinked

CHAPTERS = ROOT / "notebooks/chapters"


@pytest.mark.parametrize(
    ("written", "folder", "at", "linked"),
    [
        ("[a](parity.md)", CHAPTERS, f"chapters/{NAME}", "parity.md"),
        ("[a](../../docs/seeds.md)", CHAPTERS, "chapters/parity", "../seeds.md"),
        ("[a\nb](../README.md#go-on)", ROOT / "docs", "seeds", "index.md#go-on"),
        ("[a](../LICENSE)", ROOT / "docs", "results", "sources/LICENSE.md"),
        ("[a](common/grid.py)", ROOT, "sources/CONTRIBUTING.md", "common/grid.py.md"),
        ("[a](https://example.org/b.md)", ROOT, "index", "https://example.org/b.md"),
    ],
)  # fmt: skip
def test_links_lead_to_pages(written: str, folder: Path, at: str, linked: str) -> None:
    text = f"{written}\n\n```\n{written}\n```\n"
    assert relinked(text, folder, at) == text.replace(written.partition("(")[2], f"{linked})", 1)


def test_a_missing_or_stale_notebook_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapter, "TEXTS", tmp_path)
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    (tmp_path / f"{NAME}.md").write_text(TEXT, encoding="utf-8")
    place = tmp_path / "jax" / f"{NAME}.ipynb"
    with pytest.raises(RunError, match=rf"{place}: it is missing; .*notebooks.build"):
        site.notebook_of(NAME, "jax")
    place.parent.mkdir()
    write(place, ran("jax"))
    assert site.notebook_of(NAME, "jax").cells
    write(place, ran("jax", first_part_2=[stream("no\n", "stderr")]))
    with pytest.raises(RunError, match="standard error"):
        site.notebook_of(NAME, "jax")
    place.write_bytes(b'{"cells": 3}')
    with pytest.raises(RunError, match="is no notebook"):
        site.notebook_of(NAME, "jax")


def test_a_new_site_takes_the_place_of_an_earlier_one_once_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / "site"
    earlier.mkdir()
    (earlier / "index.html").write_text("earlier")
    assert site.main(["--out", str(earlier)]) == 2  # files of others stay
    assert "is no earlier site" in capsys.readouterr().err
    (earlier / site.MARK).touch()
    for name in ("write_chapters", "write_sources"):
        monkeypatch.setattr(site, name, lambda: None)
    # With -W, any warning makes it fail, also that of a link that leads nowhere.
    monkeypatch.setattr("sphinx.cmd.build.build_main", lambda flags: "-W" in flags)
    assert site.main(["--out", str(earlier)]) == 1
    assert (earlier / "index.html").read_text() == "earlier"

    def build_main(flags: list[str]) -> int:
        Path(flags[-1]).mkdir()
        Path(flags[-1], "index.html").write_text("<p>new</p>")
        return 0

    monkeypatch.setattr("sphinx.cmd.build.build_main", build_main)
    assert site.main(["--out", str(earlier)]) == 0
    assert (earlier / "index.html").read_text() == "<p>new</p>"
    assert list(tmp_path.iterdir()) == [earlier]
