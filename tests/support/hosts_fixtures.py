"""Two virtual hosts for a test, which is skipped, with the reason, where there can be none."""

from collections.abc import Iterator

import pytest
from hosts_cluster import Hosts, why_not


@pytest.fixture(scope="module")
def slurm() -> Iterator[Hosts]:
    """Two hosts, and a real Slurm on them."""
    yield from _hosts(slurm=True)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Two hosts."""
    yield from _hosts(slurm=False)


def _hosts(*, slurm: bool) -> Iterator[Hosts]:
    if missing := why_not(slurm=slurm):
        pytest.skip(missing)
    with Hosts(2, slurm=slurm) as made:
        yield made
