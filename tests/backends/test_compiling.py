"""What JAX compiles: the number of programs must not grow with the number of devices."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scratch_steps import batches, start

from common.chapters.scratch import ScratchOptions

pytestmark = pytest.mark.only("jax")

COMPILED = "/jax/core/compile/backend_compile_duration"


def compilations(work: Callable[[], object]) -> list[Any]:
    """The functions that are compiled while `work` is done, as often as they are."""
    import jax

    found = []

    def listen(event: str, seconds: float, **about: Any) -> None:
        if event == COMPILED:
            found.append(about.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        work()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return found


@pytest.mark.parametrize(("examples", "programs"), [(25, 1), (38, 2)])
def test_devices_with_shards_of_one_size_share_a_program(
    scratch: Any, all_devices: Sequence[Any], examples: int, programs: int
) -> None:
    """In float64, with shards of 5, or of 8 and 7: no other test has compiled for these."""
    options = ScratchOptions()
    replicas = scratch.replicate(start("float64"), all_devices, options)
    (minibatch,) = batches(1, examples, "float64")
    (few,) = batches(1, len(all_devices), "float64")

    def work(batch: Sequence[Any]) -> object:
        return scratch.gradients(*batch, replicas, all_devices, options)

    work(few)  # so that what every minibatch needs is there
    assert len(compilations(lambda: work(minibatch))) == programs
    assert compilations(lambda: work(minibatch)) == []
