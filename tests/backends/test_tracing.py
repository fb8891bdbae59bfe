"""What tracing a step costs in TensorFlow: it must not grow with devices, sizes or depth."""

from collections.abc import Sequence
from typing import Any

import concise_steps
import pytest

pytestmark = pytest.mark.only("tensorflow")


def test_the_net_is_traced_once_for_all_devices_and_sizes(
    concise: Any,
    all_devices: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is nearly all that a start costs: with eight devices it would take eight times as long."""
    options = concise_steps.options("tensorflow")
    replicas = concise.replicate(concise_steps.start("float32"), all_devices[:3], options)
    traced = []
    call = type(replicas.net).call

    def counted(net: Any, *arguments: Any, **options: Any) -> Any:
        traced.append(net)
        return call(net, *arguments, **options)

    monkeypatch.setattr(type(replicas.net), "call", counted)
    X, y = concise_steps.batches("float32")[0]
    for examples in (10, 7, 3):
        concise.train_batch(X[:examples], y[:examples], replicas, all_devices[:3], 0.1, options)
        assert len(traced) == 1, examples
    for examples in (10, 7, 3):
        concise.predict(X[:examples], replicas, all_devices[:3])
        assert len(traced) == 2, examples
    # A device without examples has a program of its own, next to that of the others.
    concise.train_batch(X[:2], y[:2], replicas, all_devices[:3], 0.1, options)
    assert len(traced) == 4
    concise.train_batch(X[:2], y[:2], replicas, all_devices[:3], 0.1, options)
    assert len(traced) == 4
