"""Which run is named first where several fail."""

from pathlib import Path

from agreement import edit, failed, make
from numpy_chapter import NumpyChapter, UnnoticedStaleReplica

from common.compare.comparison import verdict_on
from common.compare.folder import examine
from common.diagnose.suspects import suspects
from common.records.record import Failure


def test_a_failed_run_comes_before_those_that_it_leaves_without_another(tmp_path: Path) -> None:
    failure = Failure.of(MemoryError("no memory is left")).model_dump()
    make(tmp_path, "jax", NumpyChapter(), 1)
    edit(make(tmp_path, "mxnet", NumpyChapter(), 1), status="failed", failure=failure)
    examined = examine(tmp_path, frameworks=["jax", "mxnet"])
    record, peers = verdict_on(examined).failures
    assert (record.check, record.framework) == ("record", "mxnet")
    assert (peers.check, peers.framework) == ("peers", "jax")
    mxnet, jax = suspects(examined)
    assert (mxnet.framework, mxnet.ended) == ("mxnet", True)
    assert (jax.framework, jax.ended) == ("jax", False)
    assert jax.first.step == "nothing to compare it with"


def test_runs_with_a_wrong_step_are_no_reference(tmp_path: Path) -> None:
    (tmp_path / "allreduce").mkdir()
    make(tmp_path / "float64", "jax", NumpyChapter(), 1)
    make(tmp_path / "float64", "jax", UnnoticedStaleReplica(), 2)
    for name in ("ring", "tree"):
        bug = UnnoticedStaleReplica()
        make(tmp_path / "allreduce" / name, "jax", bug, 3, allreduce=name)
    examined = examine(tmp_path, frameworks=["jax"])
    verdict = verdict_on(examined)
    assert {devices for _, _, devices in failed(verdict)} == {2, 3}
    assert verdict.failures[0].check == "steps"
    (suspect,) = suspects(examined)
    assert suspect.decided
    assert suspect.first.entry.devices == 2
