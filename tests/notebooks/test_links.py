"""The checker of links: what leads nowhere is named, and what leads somewhere is not."""

from pathlib import Path

import pytest

from common.base.errors import RunError
from notebooks.web.links import check

GOOD = """<!DOCTYPE html><html><head><link rel="stylesheet" href="_static/a.css?v=1"></head><body>
<h1 id="top">One</h1>
<a href="#top">here</a> <a href="two.html#caf%C3%A9">there</a> <a href="two.html">there</a>
<a href="https://example.org/x#y">away</a> <a href="mailto:a@example.org">write</a>
<img src="data:image/png;base64,AAAA" alt="">
</body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/a.css").touch()
    (tmp_path / "one.html").write_text(GOOD)
    (tmp_path / "two.html").write_text('<p id="café">Two</p><a name="old"></a>', encoding="utf-8")
    return tmp_path


def add(site: Path, markup: str) -> None:
    with (site / "two.html").open("a") as page:
        page.write(f"\n{markup}")


def test_links_that_lead_somewhere(site: Path) -> None:
    add(site, '<a href="one.html?framework=jax#top">back</a> <a href="#old">old</a>')
    check(site)


def test_what_leads_nowhere_is_named_with_its_place(site: Path) -> None:
    wrong = {
        '<a href="three.html">': "three.html: there is no such file",
        '<img src="_images/a.svg">': "_images/a.svg: there is no such file",
        '<a href="_static">': "_static: there is no such file",
        '<a href="one.html#bottom">': "one.html#bottom: the page has no such place",
        '<a href="#top">': "#top: the page has no such place",
        '<a href="../outside.html">': "../outside.html: it is outside the site",
    }
    for markup in wrong:
        add(site, markup)
    with pytest.raises(RunError, match="6 broken links: ") as found:
        check(site)
    told = str(found.value).removeprefix("6 broken links: ").split("; ")
    assert told == [f"two.html:{line}: {said}" for line, said in enumerate(wrong.values(), start=2)]
