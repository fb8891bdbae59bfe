"""What a chapter may say of itself that is not plain data parallelism."""

import pytest

from common.base.errors import RequestError
from common.chapters.chapters import SPECS
from common.chapters.scratch import ScratchOptions
from common.chapters.suites import Settings
from common.records.record import run_name
from common.settings.request import Request


def test_each_part_of_a_minibatch_needs_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScratchOptions, "parts", lambda options, devices: 4 * devices)
    short, enough = (Request.from_settings("jax", "scratch", batch_size=n) for n in (7, 8))
    with pytest.raises(RequestError, match="8 parts of a step cannot share a minibatch of 7"):
        short.resolve(2, "cpu")
    assert enough.resolve(2, "cpu").batch_size == 8


def test_the_way_to_split_is_in_the_name_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Settings = {"allreduce": "ring", "batch_size": 100}
    assert run_name("jax", "scratch", 2, SPECS["scratch"].way(settings)) == "jax-scratch-2dev"
    monkeypatch.setattr(ScratchOptions, "way", lambda options: options.allreduce)
    assert run_name("jax", "scratch", 2, SPECS["scratch"].way(settings)) == "jax-scratch-ring-2dev"
