"""A run over hosts has to give one host's bits, where promised, and to have been over hosts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.chapters.chapters import SUITES
from common.compare.checks import Run
from common.compare.findings import Finding
from common.compare.over_hosts import findings

SUITE = next(each for each in SUITES if (each.chapter, each.name) == ("scratch", "hosts"))


def run(processes: int, weight: float = 0.1, devices: int = 3) -> Run:
    cluster = SimpleNamespace(processes=[None] * processes) if processes > 1 else None
    config = SimpleNamespace(devices=devices)
    record: Any = SimpleNamespace(
        framework="pytorch", chapter="scratch", config=config, cluster=cluster
    )
    return Run(record, {"weights/fc2.bias": np.array([weight]), "losses": np.array([2.3])})


def found(over: Run, single: Run | None) -> list[Finding]:
    singles = {} if single is None else {("pytorch", single.devices): single}
    return list(findings(SUITE, over, singles))


@pytest.mark.parametrize("weight", [0.1, 0.0])
def test_the_same_bits_pass_and_minus_zero_is_zero(weight: float) -> None:
    (finding,) = found(run(3, weight or -0.0), run(1, weight))
    assert finding.passed


def test_one_last_bit_is_seen_and_named() -> None:
    (finding,) = found(run(3, float(np.nextafter(0.1, 1))), run(1))
    assert not finding.passed
    assert finding.diverged == ["weights/fc2.bias"]


def test_a_run_that_was_not_over_hosts_or_has_nothing_beside_it_does_not_pass() -> None:
    for over, single in ((run(1), run(1)), (run(2), run(1)), (run(3), None)):
        (finding,) = found(over, single)
        assert not finding.passed
        assert finding.note


def test_a_run_on_one_device_needs_one_host() -> None:
    assert found(run(1, devices=1), None) == []
