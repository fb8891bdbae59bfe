"""Processes and hosts that a run over hosts loses end it soon, by name, and leave nothing."""

from pathlib import Path

import pytest
from hosts_cluster import Hosts, why_not
from hosts_hurt import EVERY, HOSTS, SOON, Fault, RunOverHosts
from killed_runs import Runner
from started import SECONDS

from common.training.checkpoints import checkpoints_in, read_checkpoint

pytestmark = [pytest.mark.faults, pytest.mark.short("pytorch")]

SAME_BITS = Fault("middle", "host gone", "host", 1)
"""After this one a run over hosts resumes; after those of the first process, one in one process."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fault" in metafunc.fixturenames:
        short = metafunc.config.getoption("--short")
        metafunc.parametrize("fault", [SAME_BITS] if short else EVERY, ids=str)


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    if missing := why_not():
        pytest.skip(missing)


def test_a_run_that_loses_a_process_or_a_host_ends_soon(
    framework: str, fault: Fault, tmp_path: Path
) -> None:
    runner = Runner(framework, fault.case(framework), tmp_path)
    with Hosts(HOSTS) as hosts:
        run = RunOverHosts(runner, hosts)
        run.come_to(fault)
        run.strike(fault)
        remaining = run.remain(fault)
        seconds = run.end_of(remaining, 2 * SOON)
        assert seconds < SOON
        for rank in remaining:
            assert run.started[rank].returncode == 1, run.said(rank)
            assert names(run.said(rank), fault.rank), run.said(rank)
        run.require_nothing_left()
    complete = runner.record("hurt").status == "complete"
    # Trainers may have come to the end before anybody misses a supervisor.
    assert not complete or (fault.who == "supervisor" and runner.tensors("hurt"))
    read_checkpoint(checkpoints_in(tmp_path / "hurt", runner.name)[0])
    if fault.rank == 0 or fault == SAME_BITS:
        resumes(runner, fault)


def names(said: str, rank: int) -> bool:
    """Whether a command's last line says that it failed, and names a process and its host."""
    *_, last = said.strip().splitlines()
    return ": error: " in last and f"process {rank} on n{rank + 1}" in last


def resumes(runner: Runner, fault: Fault) -> None:
    """A run resumes from the checkpoint that is left, and ends well."""
    if fault != SAME_BITS:
        newest = checkpoints_in(runner.folder / "hurt", runner.name)[0]
        runner.finish("alone", f"--resume-from={newest}")
        record = runner.record("alone")
        assert record.status == "complete"
        assert "devices by host 1 + 1 + 1 there, 3 here" in record.resumed[-1].differences
        return
    with Hosts(HOSTS) as hosts:
        run = RunOverHosts(runner, hosts)
        run.start(range(HOSTS), "--resume")
        run.end_of(range(HOSTS), SECONDS)
        assert [run.started[rank].returncode for rank in range(HOSTS)] == [0] * HOSTS, run.said(0)
    runner.finish("whole")
    runner.require_same("whole", "hurt")
