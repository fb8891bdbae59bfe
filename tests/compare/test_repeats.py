"""A run over hosts has to give one host's bits, where promised, and to have been over hosts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.chapters.chapters import SUITES
from common.compare.checks import Run
from common.compare.findings import Finding
from common.compare.repeats import findings, on_one_host

SUITE = next(each for each in SUITES if (each.chapter, each.name) == ("scratch", "hosts"))


def run(hosts: str, weight: float = 0.1, devices: int = 3) -> Run:
    """A run whose processes were on these hosts, of one letter each."""
    members = [SimpleNamespace(host=host) for host in hosts]
    cluster = SimpleNamespace(processes=members) if len(hosts) > 1 else None
    config = SimpleNamespace(devices=devices)
    record: Any = SimpleNamespace(
        framework="pytorch", chapter="scratch", config=config, cluster=cluster
    )
    return Run(record, {"weights/fc2.bias": np.array([weight]), "losses": np.array([2.3])})


def found(over: Run, single: Run | None) -> list[Finding]:
    known = {} if single is None else {("one-host", "pytorch", single.devices): single}
    return list(findings(SUITE, known, over, {}))


@pytest.mark.parametrize("weight", [0.1, 0.0])
def test_the_same_bits_pass_and_minus_zero_is_zero(weight: float) -> None:
    (finding,) = found(run("abc", weight or -0.0), run("a", weight))
    assert finding.passed


def test_one_last_bit_is_seen_and_named() -> None:
    (finding,) = found(run("abc", float(np.nextafter(0.1, 1))), run("a"))
    assert not finding.passed
    assert finding.diverged == ["weights/fc2.bias"]


@pytest.mark.parametrize(
    ("hosts", "devices", "right"),
    [
        ("abc", 3, True),
        ("aaa", 3, True),
        ("a", 3, False),
        ("aab", 3, False),
        ("aabb", 4, True),
        ("aaaa", 4, True),
        ("abcd", 4, False),
        ("aaa", 4, False),
    ],
)
def test_two_hosts_of_two_devices_and_three_of_one_are_what_is_asked_for(
    hosts: str, devices: int, right: bool
) -> None:
    (finding,) = found(run(hosts, devices=devices), run("a", devices=devices))
    assert (finding.passed, bool(finding.note)) == (right, not right)


def test_who_ran_on_one_host_in_place_of_several_is_said() -> None:
    several = [run("abc"), run("abab", devices=4)]
    assert on_one_host(SUITE, [*several, run("a", devices=1)]) == []
    assert on_one_host(SUITE, [*several, run("aaa")]) == ["pytorch"]


def test_a_run_with_none_on_one_host_beside_it_does_not_pass() -> None:
    (finding,) = found(run("abc"), None)
    assert not finding.passed
    assert finding.note


def test_a_run_on_one_device_needs_one_host() -> None:
    assert found(run("a", devices=1), None) == []
