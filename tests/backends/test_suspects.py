"""Which variables of the environment are named when a framework fails."""

import os

import pytest

from common.backends.environment import Environment, provide

READ = Environment(breaking=("TOY_WAY",), roles=("TOY_ROLE",))


def test_what_the_run_has_set_itself_is_no_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_WAY", "")  # so that it is gone again in the end
    monkeypatch.delenv("TOY_WAY")
    provide("TOY_WAY", "eth0")
    assert READ.suspects() == ""
    monkeypatch.setenv("TOY_WAY", "eth1")
    provide("TOY_WAY", "eth0")
    assert READ.suspects() == "TOY_WAY=eth1"


def test_who_a_process_is_is_forgotten_before_a_framework_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_ROLE", "server")
    READ.forget()
    assert "TOY_ROLE" not in os.environ
