"""The net is compiled once."""

from collections.abc import Sequence
from typing import Any

import concise_steps
import pytest


@pytest.mark.only("tensorflow")
def test_the_net_is_traced_once_for_all_devices_and_sizes(
    concise: Any, all_devices: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is nearly all that a start costs."""
    options, devices = concise_steps.options("tensorflow"), all_devices[:3]
    trainer = concise.trainer(concise_steps.start("float32"), devices, options)
    traced = []
    call = type(trainer.replicas.net).call

    def counted(net: Any, *arguments: Any, **options: Any) -> Any:
        traced.append(net)
        return call(net, *arguments, **options)

    monkeypatch.setattr(type(trainer.replicas.net), "call", counted)
    X, y = concise_steps.batches("float32")[0]
    for examples in (10, 7, 3):
        trainer.train_batch(X[:examples], y[:examples], 0.1)
        assert len(traced) == 1, examples
