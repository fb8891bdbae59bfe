"""What a whole run tells beyond its first wrong step, and which run is named first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import edit, failed, make
from numpy_chapter import Momentum, NumpyChapter, UnnoticedStaleReplica

from common.base.arrays import Array
from common.compare import numpy_nets
from common.compare.comparison import verdict_on
from common.compare.folder import examine
from common.compare.numpy_nets import Step
from common.compare.recorded_steps import recompute
from common.diagnose.hints import hint
from common.diagnose.suspects import suspects
from common.pairs.runs import read_run
from common.records.record import Failure


def at_rate(change: Callable[[int, float], float]) -> dict[str, Any]:
    """Trains at the rate that `change` returns, of the number of devices and the right one."""

    def train_batch(self: Any, X: Array, y: Array, lr: float) -> float:
        return NumpyChapter.train_batch(self, X, y, change(self.shards, lr))

    return {"train_batch": train_batch}


def smoothed(self: Any, X: Array, y: Array) -> Step:
    net = numpy_nets.LeNet(self.replicas[0])
    loss, d = numpy_nets.cross_entropy(net.forward(X), y)
    net.backward(d + 1e-4 / len(y) * (np.eye(10)[y] - 0.1))
    return Step(loss, loss, net.gradients, {}, {})


PLAIN: list[tuple[str, dict[str, Any]]] = [
    (  # falls once for each device
        "in step 2, the update is the right one at the rate of step 3",
        at_rate(lambda devices, lr: 0.05 - devices * (0.05 - lr)),
    ),
    ("in step 4, the update is the right one × 1.6", at_rate(lambda devices, lr: max(lr, 0.02))),
    ("", {"step": smoothed}),
]
WITH_MOMENTUM: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    (
        "in step 1, the update is that of Nesterov's momentum: 1 + 0.9 times ",
        {"taken": lambda self, grad, velocity: grad + 0.9 * velocity},
    ),
    (
        "in step 1, the momentum is rounded to float32",
        {"kept": lambda self, velocity: velocity.astype("float32").astype("float64")},
    ),
    ("", {"kept": lambda self, velocity: 0 * velocity, "taken": lambda self, grad, _: grad}),
]
"""What a hint says of chapters with these methods."""


@pytest.mark.parametrize(
    ("base", "text", "methods"),
    [*((NumpyChapter, *x) for x in PLAIN), *((Momentum, *x) for x in WITH_MOMENTUM)],
)
def test_a_hint_rests_on_the_whole_run(
    tmp_path: Path, base: type[NumpyChapter], text: str, methods: dict[str, Any]
) -> None:
    settings = {"chapter": "strategies", "strategy": "data"}
    if base is NumpyChapter:
        settings = {"lr_decay": "linear", "init_weights": ""}
    bug, devices = type("Bug", (base,), methods)(), 2 if "rate of" in text else 1
    run = read_run(make(tmp_path, "jax", bug, devices, **settings))
    recomputed = recompute(run)
    assert recomputed
    found = hint(run, recomputed)
    assert found.startswith(text and f"fits: {text}")
    assert bool(found) == bool(text)


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
