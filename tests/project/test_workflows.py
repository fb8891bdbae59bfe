"""A workflow may read, runs actions by digest, and installs what is checked."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").iterdir())
MAY_PUBLISH = "\n    permissions:\n      pages: write\n      id-token: write\n"
"""What the job that publishes the site may do, and no other."""


def faults(text: str) -> Iterator[str]:
    """What is wrong with a workflow, line by line."""
    if "\npermissions:\n  contents: read\n\n" not in text:
        yield "it does not say that it may only read"
    if re.search("permissions:|write", text.replace(MAY_PUBLISH, "").partition("\njobs:")[2]):
        yield "a job may do more"
    for action in re.findall(r"\buses: *(.*)", text):
        if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action):
            yield f"{action} has no digest"
    for command in re.findall(r".*\binstall\b.*", text):
        if not command.endswith("pip install --require-hashes -r constraints/nox.txt"):
            yield f"not checked: {command.strip()}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_safe(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not list(faults(text))
    assert text.count(MAY_PUBLISH) == (path.name == "pages.yml")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("permissions:\n  contents: read\n", "", "may only read"),
        ("contents: read", "contents: write", "may only read"),
        ("permissions:\n  contents: read\n", "permissions: write-all\n", "may only read"),
        ("contents: read\n", "contents: read\n  packages: write\n", "may only read"),
        ("  check:\n", "  check:\n    permissions: write-all\n", "a job may do more"),
        ("  check:\n", "  check:\n    permissions:\n      contents: write\n", "a job may do more"),
        ("@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "@v4", "actions/checkout@v4 has no"),
        ("@11bd71901bbe5b1630ceea73d27597364c9af683", "@11bd719", "has no digest"),
        (" # v4.2.2", "", "has no digest"),
        ("--require-hashes -r constraints/nox.txt", "nox uv", "not checked: - run: python"),
    ],
)
def test_a_workflow_that_is_not_safe_is_found(old: str, new: str, fault: str) -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert old in text
    assert any(fault in each for each in faults(text.replace(old, new, 1)))
