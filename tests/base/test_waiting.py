"""Threads look for work for a moment only, unless the user wants it otherwise."""

import os

import pytest

from common.base.waiting import GNU, LOOKS, OWN, wait_briefly


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OWN:
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)


def test_threads_look_for_a_moment() -> None:
    wait_briefly()
    assert os.environ[GNU] == str(LOOKS)


@pytest.mark.parametrize("variable", OWN)
def test_what_the_user_says_stays(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "7")
    wait_briefly()
    assert {name: os.environ[name] for name in OWN if name in os.environ} == {variable: "7"}
