"""The stepper's data: every frame is what an independent walk finds, and every message is in it."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import walked

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import stepper
from notebooks.drawing.frames import words

ALL = [(name, k) for name in SCHEDULES for k in (2, 3, 4, 7, 8, 11, 16)]


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
            *("tree", 11, 1),
            "Round 1 of 8: 5 devices send the vector to the device 1 before theirs. "
            "The receiver adds it to its own. 5 messages, each the whole vector.",
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


def test_the_page_stays_small_and_whole() -> None:
    html = stepper.fragment("there")
    assert len(html.encode()) < 400_000
    content = html.partition('<script type="application/json">')[2].partition("</script>")[0]
    assert json.loads(content) == json.loads(json.dumps(stepper.data()))
    assert '<script defer src="there/stepper.js"></script>' in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
