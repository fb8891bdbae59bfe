"""A workflow may read, runs actions by digest, and installs what is checked."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github/workflows").iterdir())
MAY_PUBLISH = "\n    permissions:\n      pages: write\n      id-token: write\n"
"""What the job that publishes the site may do, and no other."""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_safe(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "\npermissions:\n  contents: read\n\n" in text
    assert text.count(MAY_PUBLISH) == (path.name == "pages.yml")
    jobs = text.replace(MAY_PUBLISH, "").partition("\njobs:")[2]
    assert not re.search("permissions:|write", jobs)
    for action in re.findall(r"\buses: *(.*)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    for command in re.findall(r".*\binstall\b.*", text):
        assert command.endswith("pip install --require-hashes -r constraints/nox.txt"), command
