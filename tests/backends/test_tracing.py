"""What tracing a step costs in TensorFlow: what it does must not grow with what is traced."""

from collections.abc import Sequence
from typing import Any

import concise_steps
import pytest

pytestmark = pytest.mark.only("tensorflow")


@pytest.mark.parametrize("batch_norm", ["per-device", "sync"])
def test_no_allreduce_searches_the_graph(
    concise: Any,
    all_devices: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    batch_norm: str,
) -> None:
    """Each would go through what all devices have done so far: minutes on 8 of them."""
    from tensorflow.python.ops import op_selector

    walked = []
    search = op_selector.get_backward_walk_ops

    def counted(*arguments: Any, **options: Any) -> Any:
        found = search(*arguments, **options)
        walked.append(len(found))
        return found

    monkeypatch.setattr(op_selector, "get_backward_walk_ops", counted)
    devices = all_devices[:2]
    replicas = concise.replicate(concise_steps.start("float32"), devices, batch_norm=batch_norm)
    X, y = concise_steps.batches("float32")[0]
    concise.gradients(X, y, replicas, devices)
    assert bool(walked) == (batch_norm == "sync")
    assert max(walked, default=0) < 5
