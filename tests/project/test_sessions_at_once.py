"""Two sessions that need the same environment at the same time: one makes it, the others wait."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from together import wait_until

from common.base.locks import held
from sessions import environments
from sessions.support import Environment

PLACE = ".nox/common/bin/python"
WAITING = "waiting for another session that makes .nox/common"


class Session:
    """What an environment asks of a session of nox."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.log = self.said.append
        self.run_install = None

    def error(self, text: str) -> None:
        raise SystemExit(text)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("constraints").mkdir()
    Path("constraints/common.txt").touch()
    return Session()


@pytest.mark.parametrize("failures", [0, 1])
def test_it_is_made_once_and_whole_before_it_is_used(
    session: Any, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    made: list[str] = []

    def make(wanted: Environment, run: Callable[..., object]) -> None:
        made.append("begun")
        wait_until(lambda: session.said.count(WAITING) == 2)  # the other two have come
        if len(made) <= failures:
            raise OSError("no place")
        wanted.python.parent.mkdir(parents=True)
        wanted.python.symlink_to(sys.executable)
        wanted.confirm()
        made.append("done")

    monkeypatch.setattr(Environment, "make", make)
    with ThreadPoolExecutor(3) as threads:
        tried = [threads.submit(environments.common, session) for _ in range(3)]
    found = [each.result() for each in tried if not each.exception()]
    assert found == [PLACE] * (3 - failures)
    assert made == ["begun"] * (1 + failures) + ["done"]
    assert session.said.count(WAITING) == 2
    assert [each.name for each in Path(".nox").iterdir()] == ["common"]


def test_a_session_does_not_wait_for_ever(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "INSTALLING", 0.2)
    monkeypatch.setattr(Environment, "make", lambda *_: pytest.fail("it was made"))
    with held(Path(".nox"), "common"), pytest.raises(SystemExit, match="still at work"):
        environments.common(session)


def test_an_environment_that_goes_while_it_is_looked_at_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Environment(tmp_path, [])
    for look in ("os.access", "pathlib.Path.is_file"):
        monkeypatch.setattr(look, lambda *_: True)
    assert not made.complete()
