"""The recipes in `launch/` train over virtual hosts, under a real Slurm among others."""

from pathlib import Path

import pytest
from hosts_cluster import Hosts, hosts as hosts, slurm as slurm
from hosts_jobs import FLAGS, LIMIT, Job, environment, laid_out
from killed_runs import require_same

from common.records.record import Record
from common.records.store import read_record

pytestmark = pytest.mark.launched


def require_both(record: Record, launcher: str) -> None:
    assert record.cluster is not None
    assert (record.cluster.launcher, [each.host for each in record.cluster.processes]) == (
        launcher,
        ["n1", "n2"],
    )
    assert len(record.devices) == 2


def test_a_job_of_slurm_that_is_requeued_ends_with_the_same_bits(
    slurm: Hosts, framework: str, tmp_path: Path
) -> None:
    told = environment(framework, FLAGS)
    whole = Job(slurm, tmp_path / "whole", told)
    require_both(whole.require_well(), "Slurm")
    job = Job(slurm, tmp_path / "stopped", told)
    with job.held():
        job.ask_to_stop()
    record = job.require_well()
    assert "Restarts=1" in job.says(), job.said()
    assert len(record.resumed) == 1, job.said()
    assert 0 < record.resumed[0].step < len(record.losses)
    require_both(record, "Slurm")
    require_same(whole.record(), job.record())


def trained(hosts: Hosts, framework: str, folder: Path, *commands: str) -> Record:
    """The record of what the commands train, each on one host."""
    told = environment(framework, f"{FLAGS} --checkpoint-dir results")
    laid_out(folder)
    started = [
        hosts.start(name, "sh", "-ec", f"cd '{folder}'; {command}", env=told)
        for name, command in zip(hosts.nodes, commands, strict=True)
    ]
    assert [each.wait(LIMIT) for each in started] == [0, 0]
    return read_record(folder / f"results/{framework}-concise-2dev.json")


def test_a_shell_on_each_host(hosts: Hosts, framework: str, tmp_path: Path) -> None:
    commands = [f"launch/by_hand.sh n1:29500 2 {rank}" for rank in range(2)]
    require_both(trained(hosts, framework, tmp_path, *commands), "by hand")


@pytest.mark.only("pytorch")
def test_torchrun_on_each_host(hosts: Hosts, framework: str, tmp_path: Path) -> None:
    commands = 2 * ["launch/torchrun.sh n1:29400 2"]
    require_both(trained(hosts, framework, tmp_path, *commands), "torchrun")
