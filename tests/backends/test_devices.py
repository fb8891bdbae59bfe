"""Which devices a run gets, and which of them are a process's own."""

import pytest

from common.backends import loading
from common.backends.interface import DeviceRequest, Process
from common.base import machine
from common.base.errors import RequestError
from common.parallel.shards import share_of

NAMES = ["cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4", "cpu:5"]


def test_each_process_of_a_host_has_as_many_devices_and_no_two_share_one() -> None:
    assert [share_of(NAMES, rank, 3) for rank in range(3)] == [NAMES[:2], NAMES[2:4], NAMES[4:]]


def test_devices_that_cannot_be_shared_are_refused() -> None:
    asked = DeviceRequest(6, "cpu", threads=1)
    with pytest.raises(RequestError, match="6 devices cannot be shared by 4 processes"):
        asked.on_each(Process(0, 4, 0, 4))
    # Those of the second of two hosts.
    assert asked.on_each(Process(2, 3, 0, 1)).count == 2


@pytest.mark.parametrize(
    ("kind", "count", "gpus", "found"),
    [
        ("auto", None, 0, ("cpu", 2)),
        ("auto", None, 8, ("gpu", 8)),
        ("cpu", None, 8, ("cpu", 2)),
        ("auto", 3, 0, ("cpu", 3)),
        ("gpu", 3, 8, ("gpu", 3)),
    ],
)
def test_the_devices_are_those_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, kind: str, count: int | None, gpus: int, found: tuple[str, int]
) -> None:
    cards = [machine.Card("580.1", "H100")] * gpus
    monkeypatch.setattr(loading, "find_cards", lambda _: cards)
    monkeypatch.setattr(loading.package("jax"), "for_gpus", lambda: True)
    assert loading.placed("jax", kind, count) == found
    monkeypatch.setattr(loading.package("jax"), "for_gpus", lambda: False)
    assert kind == "gpu" or loading.placed("jax", kind, count) == ("cpu", count or 2)


def test_over_several_processes_each_has_a_device() -> None:
    assert loading.placed("jax", "cpu", None, processes=3) == ("cpu", 3)


@pytest.mark.parametrize(("count", "gpus"), [(2, 0), (3, 2)])
def test_never_fewer_gpus_than_asked_for(count: int, gpus: int) -> None:
    with pytest.raises(RequestError, match=f"JAX sees {gpus} GPUs here, not {count}: ask for"):
        DeviceRequest(count, "gpu", threads=1).require(gpus, "JAX")
    DeviceRequest(count, "cpu", threads=1).require(gpus, "JAX")
