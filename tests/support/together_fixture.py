"""What tests start runs of several processes with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from together import Together


@pytest.fixture
def together(tmp_path: Path) -> Iterator[Together]:
    """Runs in a folder of the test's own; all are gone in the end."""
    made = Together(tmp_path)
    yield made
    made.end()
