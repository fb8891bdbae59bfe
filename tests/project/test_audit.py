"""An audit sees a licence that is not listed, another one, and one that nobody allowed."""

import json
from pathlib import Path

import pytest

from sessions.audit import FILE, faults, installed, pinned, read, stated, table, weaknesses

LISTED = read("# a title\ntoy     MIT\nother   BSD-3-Clause AND (MIT OR Apache-2.0)\n")
NAMES = {"toy": ["1.0"], "other": ["2.0", "3.0"]}
MIT = "License :: OSI Approved :: MIT License"
OTHER = "License :: Other/Proprietary License"


def test_every_package_has_a_licence_that_is_listed_and_allowed() -> None:
    listed = read(FILE.read_text(encoding="utf-8"))
    names = pinned(FILE.parent)
    assert len(names) > 200
    assert not list(faults(set(), names, listed))
    assert {name for name, _ in listed} == names.keys()


@pytest.mark.parametrize(
    ("name", "licence", "fault"),
    [
        ("toy", "MIT", ""),
        ("toy", "", ""),
        ("toy", "GPL", "toy is listed with MIT, but says GPL"),
        ("third", "MIT", "third is not listed in licences.txt"),
        ("third", "", "third is not listed in licences.txt"),
    ],
)
def test_what_is_installed_is_as_listed(name: str, licence: str, fault: str) -> None:
    assert list(faults({(name, licence)}, NAMES, LISTED)) == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("name", "licence", "forbidden"),
    [
        ("toy", "AGPL-3.0", "AGPL-3.0"),
        ("toy", "MIT AND (GPL OR Apache-2.0)", "GPL"),
        ("toy", "nobody knows", "nobody knows"),
        ("nvidia-toy", "LicenseRef-NVIDIA-Proprietary", ""),
        ("toy-nvidia-toy", "LicenseRef-NVIDIA-Proprietary", "LicenseRef-NVIDIA-Proprietary"),
    ],
)
def test_a_licence_is_allowed(name: str, licence: str, forbidden: str) -> None:
    found = list(faults(set(), (), {(name, licence)}))
    wrong = f"{name} has a licence that is not allowed: {forbidden}"
    assert found == ([wrong] if forbidden else [])


def test_a_pinned_package_is_listed() -> None:
    assert list(faults(set(), [*NAMES, "third"], LISTED)) == ["third is not listed in licences.txt"]


@pytest.mark.parametrize(
    ("expression", "classifiers", "field", "licence"),
    [
        ("MIT OR Apache-2.0", [MIT], "BSD", "MIT OR Apache-2.0"),
        (None, [MIT, "Topic :: Software"], "BSD", "MIT"),
        (None, [MIT, "License :: OSI Approved :: BSD License"], None, "MIT AND BSD"),
        (None, [], "Apache 2.0\n\nand its text", "Apache-2.0"),
        (None, [OTHER], "Apache 2.0", "Apache-2.0"),
        (None, [OTHER], None, "Other/Proprietary License"),
        (None, [], "  ", ""),
        (None, [], None, ""),
    ],
)
def test_a_licence_is_read_from_the_most_exact_statement(
    expression: str | None, classifiers: list[str], field: str | None, licence: str
) -> None:
    assert stated(expression, classifiers, field) == licence


@pytest.mark.parametrize("place", ["lib/python3.11/site-packages", "Lib/site-packages"])
def test_what_is_installed_is_asked_itself(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place / "toy.by_me-1.0.dist-info"
    folder.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: Toy.By_Me\nVersion: 1.0\nClassifier: {MIT}\n"
    (folder / "METADATA").write_text(text)
    assert installed(tmp_path) == {("toy-by-me", "MIT")}


def test_the_table_has_names_versions_and_licences() -> None:
    lines = [line.split(maxsplit=2) for line in table(NAMES, LISTED).splitlines()]
    assert lines[1] == ["toy", "1.0", "MIT"]
    assert table(NAMES, LISTED).startswith("other ")
    assert "2.0, 3.0" in table(NAMES, LISTED)


def test_weaknesses_are_told_from_packages_that_could_not_be_looked_up() -> None:
    packages = [
        {"name": "toy", "version": "1.0", "vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]},
        {"name": "other", "version": "1.0", "vulns": []},
        {"name": "third", "skip_reason": "not found"},
    ]
    weak, known, unknown = weaknesses(json.dumps({"dependencies": packages}))
    assert weak == ["toy is known for PYSEC-1", "toy is known for PYSEC-2"]
    assert known == {"toy", "other"}
    assert unknown == {"third"}
    assert weaknesses("") == ([], set(), set())
