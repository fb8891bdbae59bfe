"""The recipe for Slurm trains over virtual hosts, under a real Slurm."""

from pathlib import Path

import pytest
from hosts_cluster import Hosts, slurm as slurm
from hosts_jobs import FLAGS, Job
from killed_runs import require_same

pytestmark = pytest.mark.launched


def test_a_job_that_is_requeued_ends_with_the_same_bits(
    slurm: Hosts, framework: str, tmp_path: Path
) -> None:
    whole = Job(slurm, tmp_path / "whole", framework, FLAGS)
    whole.require_well()
    job = Job(slurm, tmp_path / "stopped", framework, FLAGS)
    with job.held():
        job.ask_to_stop()
    record = job.require_well()
    assert "Restarts=1" in job.says(), job.said()
    assert len(record.resumed) == 1, job.said()
    assert 0 < record.resumed[0].step < len(record.losses)
    assert record.cluster
    assert record.cluster.launcher == "Slurm"
    assert [each.host for each in record.cluster.processes] == ["n1", "n2"]
    require_same(whole.record(), job.record())


def test_a_job_that_cannot_begin_is_not_requeued(
    slurm: Hosts, framework: str, tmp_path: Path
) -> None:
    told = Job(slurm, tmp_path, framework, "--steps nonsense").end()
    assert "JobState=FAILED" in told
    assert "Restarts=0" in told
