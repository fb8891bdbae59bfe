"""A record names the GPUs that a run could choose from, also where the run hides some."""

import pytest

from common.backends.driver import Card, Driver
from common.records import new


def test_gpus_that_a_run_hides_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(visible: str) -> Driver:
        return Driver("1.2", (Card("NVIDIA A100"),) * len(visible.split(",")))

    monkeypatch.setattr(new, "VISIBLE", "0,1")
    monkeypatch.setattr(new, "find_driver", find)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert new.gpus_here() == {"gpus": "2 x NVIDIA A100", "driver": "1.2"}
