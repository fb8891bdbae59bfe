"""The stepper's data: every frame is what an independent walk finds, and every message is in it."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import walked

from common.parallel.schedules import SCHEDULES, Schedule, Transfer
from notebooks.drawing import stepper
from notebooks.drawing.frames import frames, lanes, words

ALL = [(name, k) for name in SCHEDULES for k in range(2, 17)]


@pytest.fixture(scope="module")
def data() -> Any:
    """The data as the page reads them."""
    return json.loads(json.dumps(stepper.data()))


@pytest.mark.parametrize(("algorithm", "k"), ALL)
def test_frames_are_those_of_an_independent_walk(data: Any, algorithm: str, k: int) -> None:
    schedule, walk = SCHEDULES[algorithm](k), data[algorithm][str(k)]
    held = np.repeat(2 ** np.arange(k)[:, None], walk["chunks"], axis=1)
    expected = walked.sums(schedule), walked.sent(schedule), ((), *schedule.rounds)
    for frame, sums, sent, one in zip(walk["frames"], *expected, strict=True):
        for _, target, start, _, *found in frame["messages"]:
            held[target, start : start + len(found)] = found
        assert (held == sums).all()
        assert frame["sent"] == sent
        assert [(m[0], m[1], m[2], len(m) - 4) for m in frame["messages"]] == [
            (t.source, t.target, t.chunks.start, len(t.chunks)) for t in one
        ]
        assert {frame["adds"]} >= {t.adds for t in one}
    assert (held == 2**k - 1).all()


@pytest.mark.parametrize(("algorithm", "k"), ALL)
def test_arrows_run_into_each_other_only_where_they_meet(data: Any, algorithm: str, k: int) -> None:
    walk = data[algorithm][str(k)]
    for frame in walk["frames"]:
        for one, other in combinations(frame["messages"], 2):
            below = [start + len(sums) - 1 for _, _, start, _, *sums in (one, other)]
            if below[0] != below[1] or one[3] != other[3]:
                continue
            apart = max(one[:2]) < min(other[:2]) or max(other[:2]) < min(one[:2])
            meet = one[1] == other[1] if frame["adds"] else one[0] == other[0]
            assert apart or (meet and one[2] == other[2])
        for _, _, start, lane, *sums in frame["messages"]:
            assert lane < walk["gaps"][start + len(sums) - 1]


def test_arrows_that_cross_get_lanes_of_their_own() -> None:
    chunk = range(1)
    crossing = (Transfer(0, 2, chunk, adds=True), Transfer(1, 3, chunk, adds=True))
    assert lanes(crossing) == (0, 1)
    assert lanes((*crossing, Transfer(5, 4, chunk, adds=True))) == (0, 1, 0)
    assert lanes((Transfer(0, 2, chunk, adds=True), Transfer(1, 2, chunk, adds=True))) == (0, 0)


def test_a_device_that_is_counted_twice_is_no_picture() -> None:
    once = (Transfer(1, 0, range(1), adds=True),)
    with pytest.raises(ValueError, match="share a device"):
        frames(Schedule(2, 1, (once, once)))


@pytest.mark.parametrize(
    ("algorithm", "k", "number", "expected"),
    [
        ("ring", 4, 0, "Start: each of 4 devices has a vector of its own, cut into 4 chunks."),
        (
            *("ring", 4, 2),
            "Round 2 of 6: each device sends a chunk to the next, the last to the first. "
            "The receiver adds it to its own. 4 messages, each 1/4 of the vector.",
        ),
        (
            *("star", 3, 2),
            "Round 2 of 2: device 0 sends the vector to every other. "
            "The receiver puts it in place of its own. 2 messages, each the whole vector.",
        ),
        (
            *("sharded", 5, 1),
            "Round 1 of 2: each device sends a chunk to every other. "
            "The receiver adds it to its own. 20 messages, each 1/5 of the vector.",
        ),
        (
            *("tree", 4, 2),
            "Round 2 of 4: device 2 sends the vector to device 0. "
            "The receiver adds it to its own. 1 message: the whole vector.",
        ),
        (
            *("tree", 11, 1),
            "Round 1 of 8: 5 devices send the vector to the device 1 before theirs. "
            "The receiver adds it to its own. 5 messages, each the whole vector.",
        ),
        (
            *("halving", 4, 4),
            "Round 4 of 4: devices 0 and 2, 1 and 3 send each other 2 chunks. "
            "The receiver puts them in place of its own. 4 messages, each 1/2 of the vector.",
        ),
        (
            *("halving", 16, 2),
            "Round 2 of 8: 8 pairs of devices, 4 apart, send each other 4 chunks. "
            "The receiver adds them to its own. 16 messages, each 1/4 of the vector.",
        ),
    ],
)
def test_words_say_what_happens(algorithm: str, k: int, number: int, expected: str) -> None:
    assert words(SCHEDULES[algorithm](k), number) == expected


@pytest.mark.parametrize(("algorithm", "k"), ALL)
def test_words_count_messages_and_shares(data: Any, algorithm: str, k: int) -> None:
    walk = data[algorithm][str(k)]
    for number, frame in enumerate(walk["frames"][1:], start=1):
        said, count = frame["words"], len(frame["messages"])
        assert said.startswith(f"Round {number} of {len(walk['frames']) - 1}: ")
        assert f" {count} message{'s' * (count > 1)}" in said
        assert {len(message) for message in frame["messages"]} == {len(frame["messages"][0])}
        assert ("adds" in said) == frame["adds"]


def test_the_page_stays_small_and_whole() -> None:
    html = stepper.fragment("there")
    assert len(html.encode()) < 400_000
    content = html.partition('<script type="application/json">')[2].partition("</script>")[0]
    assert json.loads(content) == json.loads(json.dumps(stepper.data()))
    assert '<script defer src="there/stepper.js"></script>' in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
