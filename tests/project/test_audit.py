"""An audit sees a licence that is not listed, another one, and one that is not allowed."""

import json
from pathlib import Path

import pytest

from sessions.audit import FILE, faults, installed, pinned, read, stated, weaknesses

LISTED = read("# a title\ntoy     MIT\nother   BSD-3-Clause AND (MIT OR Apache-2.0)\n")
MIT = "License :: OSI Approved :: MIT License"
OTHER = "License :: Other/Proprietary License"


def test_every_package_has_a_licence_that_is_listed_and_allowed() -> None:
    listed, names = read(FILE.read_text(encoding="utf-8")), pinned()
    assert len(names) > 200
    assert not list(faults(set(), names, listed))
    assert {name for name, _ in listed} == names


def test_what_is_not_as_listed_is_found() -> None:
    found = {("toy", "GPL"), ("other", ""), ("third", "MIT")}
    assert list(faults(found, ["toy", "other", "fourth"], LISTED)) == [
        "fourth is not listed in licences.txt",
        "third is not listed in licences.txt",
        "toy is listed with MIT, but says GPL",
    ]


@pytest.mark.parametrize(
    ("name", "licence", "forbidden"),
    [
        ("toy", "AGPL-3.0", "AGPL-3.0"),
        ("toy", "MIT AND (GPL OR Apache-2.0)", "GPL"),
        ("nvidia-toy", "LicenseRef-NVIDIA-Proprietary", ""),
        ("toy-nvidia-toy", "LicenseRef-NVIDIA-Proprietary", "LicenseRef-NVIDIA-Proprietary"),
    ],
)
def test_a_licence_is_allowed(name: str, licence: str, forbidden: str) -> None:
    wrong = f"{name} has a licence that is not allowed: {forbidden}"
    assert list(faults(set(), (), {(name, licence)})) == ([wrong] if forbidden else [])


@pytest.mark.parametrize(
    ("expression", "classifiers", "field", "licence"),
    [
        ("MIT OR Apache-2.0", [MIT], "BSD", "MIT OR Apache-2.0"),
        (None, [MIT, "License :: OSI Approved :: BSD License"], "Apache", "MIT AND BSD"),
        (None, [OTHER], "Apache 2.0\n\nand its text", "Apache-2.0"),
        (None, [OTHER], None, "Other/Proprietary License"),
        (None, [], "  ", ""),
    ],
)
def test_a_licence_is_read_from_the_most_exact_statement(
    expression: str | None, classifiers: list[str], field: str | None, licence: str
) -> None:
    assert stated(expression, classifiers, field) == licence


def test_what_is_installed_is_asked_itself(tmp_path: Path) -> None:
    folder = tmp_path / "lib/python3.11/site-packages" / "toy.by_me-1.0.dist-info"
    folder.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: Toy.By_Me\nVersion: 1.0\nClassifier: {MIT}\n"
    (folder / "METADATA").write_text(text)
    assert installed(tmp_path) == {("toy-by-me", "MIT")}


def test_weaknesses_are_told_from_packages_that_could_not_be_looked_up() -> None:
    packages = [
        {"name": "toy", "version": "1.0", "vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]},
        {"name": "other", "version": "1.0", "vulns": []},
        {"name": "third", "skip_reason": "not found"},
    ]
    weak = ["toy is known for PYSEC-1", "toy is known for PYSEC-2"]
    report = json.dumps({"dependencies": packages})
    assert weaknesses(report) == (weak, {"toy", "other"}, {"third"})
    assert weaknesses("") == ([], set(), set())
