"""Compiled programs do not grow with devices, sizes or depth."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import concise_steps
import pytest
from scratch_steps import batches, start

from common.chapters.scratch import ScratchOptions

COMPILED: Final = "/jax/core/compile/backend_compile_duration"


def compilations(work: Callable[[], object]) -> int:
    """How many functions JAX compiles while `work` is done."""
    monitoring: Any = importlib.import_module("jax").monitoring
    found = []

    def listen(event: str, seconds: float, **about: Any) -> None:
        if event == COMPILED:
            found.append(about)

    monitoring.register_event_duration_secs_listener(listen)
    try:
        work()
    finally:
        monitoring.unregister_event_duration_listener(listen)
    return len(found)


@pytest.mark.only("jax")
def test_devices_with_shards_of_one_size_share_a_program(
    scratch: Any, all_devices: Sequence[Any]
) -> None:
    """In float64, with shards of 8 and 7."""
    trainer = scratch.trainer(start("float64"), all_devices, ScratchOptions())
    (minibatch,), (few,) = (batches(1, n, "float64") for n in (38, len(all_devices)))

    def work(batch: Sequence[Any]) -> object:
        return trainer.gradients(*batch)

    work(few)  # so that what every minibatch needs is there
    assert compilations(lambda: work(minibatch)) == 2
    assert compilations(lambda: work(minibatch)) == 0


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
