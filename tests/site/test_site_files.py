"""From texts and notebooks to pages: links between files, and what of a notebook cannot be used."""

from pathlib import Path

import pytest
from small_chapter import NAME, TEXT, ran, stream

from common.base.errors import RunError
from notebooks import site
from notebooks.text import chapter, notebook as files
from notebooks.text.notebook import write
from notebooks.text.sources import ROOT
from notebooks.web.relink import linked_files, relinked

CHAPTERS = ROOT / "notebooks/chapters"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapter, "TEXTS", tmp_path)
    (tmp_path / f"{NAME}.md").write_text(TEXT, encoding="utf-8")


@pytest.mark.parametrize(
    ("written", "folder", "at", "linked"),
    [
        ("[a](parity.md)", CHAPTERS, f"chapters/{NAME}", "parity.md"),
        ("[a](../../docs/seeds.md)", CHAPTERS, "chapters/parity", "../seeds.md"),
        ("[a\nb](../README.md#go-on)", ROOT / "docs", "seeds", "index.md#go-on"),
        ("[a](../LICENSE)", ROOT / "docs", "results", "sources/LICENSE.md"),
        ("[a](common/grid.py)", ROOT, "sources/CONTRIBUTING.md", "common/grid.py.md"),
        ("[a](https://example.org/b.md)", ROOT, "index", "https://example.org/b.md"),
        ("[a](missing.md)", ROOT, "index", "missing.md"),
    ],
)  # fmt: skip
def test_links_lead_to_pages(written: str, folder: Path, at: str, linked: str) -> None:
    assert relinked(written, folder, at).rpartition("(")[2].rstrip("`)") == linked


def test_code_is_not_relinked() -> None:
    code = "```\n[a](../README.md)\n```"
    text = f"[a](../README.md)\n\n{code}\n\n[a](../README.md)\n"
    expected = f"[a](index.md)\n\n{code}\n\n[a](index.md)\n"
    assert relinked(text, ROOT / "docs", "seeds") == expected


def test_files_that_need_a_page() -> None:
    text = "[a](../LICENSE) [b](seeds.md) [c](book.svg) [d](../missing) [e](https://example.org)"
    assert list(linked_files(text, ROOT / "docs")) == [ROOT / "LICENSE"]


@pytest.mark.usefixtures("small")
def test_a_missing_or_stale_notebook_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    place = tmp_path / "jax" / f"{NAME}.ipynb"
    with pytest.raises(RunError, match=rf"{place}: it is missing; .*notebooks.build"):
        site.notebook_of(NAME, "jax")
    place.parent.mkdir()
    write(place, ran("jax"))
    assert site.notebook_of(NAME, "jax").cells
    write(place, ran("jax", first_part_2=[stream("no\n", "stderr")]))
    with pytest.raises(RunError, match="standard error"):
        site.notebook_of(NAME, "jax")
    write(place, ran("jax"))
    (tmp_path / f"{NAME}.md").write_text(TEXT.replace("Said to all", "Told"), encoding="utf-8")
    with pytest.raises(RunError, match="the cell first-part-1 has another text; `python -m"):
        site.notebook_of(NAME, "jax")


def test_a_folder_with_other_files_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept").touch()
    assert site.main(["--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is no earlier site" in line
    assert (tmp_path / "kept").exists()


def test_a_build_that_fails_leaves_the_earlier_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = tmp_path / "site"
    earlier.mkdir()
    (earlier / "index.html").write_text("earlier")
    # With -W, any warning makes it fail, also that of a link that leads nowhere.
    monkeypatch.setattr("sphinx.cmd.build.build_main", lambda flags: "-W" in flags)
    with pytest.raises(RunError, match="without a warning"):
        site.build(earlier)
    assert (earlier / "index.html").read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [earlier]


def test_a_new_site_takes_the_place_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, link = tmp_path / "site", tmp_path / "link"
    earlier.mkdir()
    (earlier / "index.html").write_text("earlier")
    (earlier / site.MARK).touch()
    link.symlink_to(earlier)

    def build_main(flags: list[str]) -> int:
        made = Path(flags[-1])
        made.mkdir()
        (made / "index.html").write_text("<p>new</p>")
        return 0

    monkeypatch.setattr("sphinx.cmd.build.build_main", build_main)
    for name in ("write_chapters", "write_sources"):
        monkeypatch.setattr(site, name, lambda: None)
    assert site.main(["--out", str(link)]) == 0
    assert (earlier / "index.html").read_text() == "<p>new</p>"
    assert link.is_symlink()
    assert {each.name for each in tmp_path.iterdir()} == {"site", "link"}
