"""Whoever does not belong to a run is told why, or not heard at all; who comes hides nobody."""

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hub_members import ASKED, Hall, hall as hall

from common.hosts.wire import LONGEST, SILENT

Made = Callable[..., Hall]


@pytest.mark.parametrize(
    ("rank", "changed", "why"),
    [
        (1, {}, "process 1 has come already, on n1"),
        (3, {}, "there is no process 3 of 3 here"),
        (-1, {}, "there is no process -1 of 3 here"),
        (
            2,
            {"asked": {**ASKED, "--steps": "8"}},
            "--steps is 8 on n2, and 7 on n0: start all processes alike",
        ),
        (
            2,
            {"asked": {**ASKED, "numpy": "1.23"}},
            "numpy is 1.23 on n2, and 2.0 on n0: start all processes alike",
        ),
        (
            2,
            {"asked": {**ASKED, "--hosts": "4"}},
            "--hosts is 4 on n2, and None on n0: start all processes alike",
        ),
        (2, {"asked": {"numpy": "2.0"}}, "--steps is None on n2, and 7 on n0: .*"),
    ],
)
def test_who_does_not_belong_to_the_run_is_told_why(
    hall: Made, rank: int, changed: dict[str, Any], why: str
) -> None:
    here = hall()
    members = [here.come(each) for each in (0, 1)]
    members[1].hear("missing")
    refused = here.come(rank, **changed)
    said = refused.hear("refused")
    assert "\n" not in said
    assert said == why or (why.endswith(".*") and said.startswith(why.removesuffix(".*")))
    assert refused.is_left()
    members.append(here.come(2))
    assert [len(each.hear("everyone")) for each in members] == [3] * 3


NONSENSE = [
    b"GET / HTTP/1.1\r\nHost: n0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\n" * 100,
    b"[]\n",
    b"3\nnull\n",
    b"\xff\xfe\n",
    b"[" * 100_000 + b"\n",
    b'{"a":' * 20_000 + b"\n",
    b"9" * 10_000 + b"\n",
    b"x" * (LONGEST + 2),
    b"{}\n{}\n{}\n",
    b'{"alive": true}\n{"alive": true}\n',
    b'{"give": 1}\n{"done": true}\n{"failure": {"order": 0}}\n{"stop": true}\n',
    b'{"rank": 2}\n{"rank": 2}\n',
    b'{"rank": true}\n',
    b'{"rank": 2, "asked": [1]}\n',
    b'{"rank": 2, "asked": null}\n',
    b'{"rank": [2], "asked": {}}\n',
    b'{"rank": 2.0, "asked": {}}\n',
    b'{"rank": 1e999}\n',
    json.dumps({"rank": 2, "asked": ASKED}).encode() + b"\n",
    json.dumps({"rank": 2, "host": [1], "asked": ASKED}).encode() + b"\n",
    json.dumps({"rank": 2, "host": "n2", "asked": ASKED}).encode(),
]


@pytest.mark.parametrize("said", NONSENSE, ids=[each[:24] for each in map(repr, NONSENSE)])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_stranger_that_talks_nonsense_harms_nobody(hall: Made, said: bytes, when: str) -> None:
    here = hall()
    members = here.all() if when == "meanwhile" else [here.come(each) for each in (0, 1)]
    stranger = socket.create_connection(("localhost", here.port))
    stranger.sendall(said)
    stranger.close()
    time.sleep(0.1)
    if when == "before":
        members.append(here.come(2))
        assert [len(each.hear("everyone")) for each in members] == [3] * 3
    for rank, each in enumerate(members):
        each.say(give=rank)
    assert [each.hear("got") for each in members] == [[0, 1, 2]] * 3


def test_a_stranger_that_says_nothing_is_left_soon(hall: Made) -> None:
    here = hall()
    members = [here.come(each) for each in (0, 1)]
    strangers = [here.member() for _ in range(20)]
    assert all(each.is_left() for each in strangers)
    members.append(here.come(2))
    assert [len(each.hear("everyone")) for each in members] == [3] * 3


def test_a_member_that_talks_nonsense_is_lost(hall: Made) -> None:
    members = hall().all()
    members[1].wire.connection.sendall(b"[]\n")
    assert members[0].hear("over")["rank"] == 1


def test_whoever_comes_late_hides_nobody_that_is_silent(hall: Made) -> None:
    here = hall(20)
    first, lost = here.come(0), here.come(1)
    lost.freeze()
    told: list[Any] = []
    hearing = threading.Thread(target=lambda: told.append(first.hear("over")))
    hearing.start()
    with suppress(OSError):  # nobody is let in any more
        for rank in range(2, 12):
            here.come(rank)
            time.sleep(0.3)  # 6 of the 15 beats that may be missing
        raise AssertionError("all that came late were let in")
    hearing.join()
    assert (told[0]["message"], told[0]["rank"]) == (SILENT, 1)
