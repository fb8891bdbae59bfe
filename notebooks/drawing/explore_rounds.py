"""The figure in which a reader steps through an allreduce: its data, and its HTML.

Python walks the schedules; `docs/_static/explore-rounds.js` draws what it is given. Without
scripts the reader sees the storyboard of a ring.
"""

from typing import Any, Final

from common.parallel.schedules import SCHEDULES, Schedule
from notebooks.drawing.explorers import buttons, choice, figure, slider
from notebooks.drawing.frames import Frame, frames, gaps, words
from notebooks.drawing.pictures import allreduce

DEVICES: Final = range(2, 17)
"""The numbers of devices to choose from."""

FIRST_SHOWN: Final = ("ring", 4)
"""The algorithm and the number of devices that a reader sees first."""

BODY: Final = """<p class="explorer-sent"></p>
<div class="explorer-stage" tabindex="0" role="group" aria-label="Arrow keys step"></div>
<p class="explorer-key"></p>"""


def data() -> dict[str, dict[str, Any]]:
    """Everything that can be shown, by algorithm and number of devices, as JSON can hold it."""
    return {
        name: {str(k): _walked(schedule(k)) for k in DEVICES}
        for name, schedule in SCHEDULES.items()
    }


def _walked(schedule: Schedule) -> dict[str, Any]:
    """One allreduce: chunks, the lanes that arrows need below each, and the frames."""
    shown = frames(schedule)
    moments = [_moment(frame, words(schedule, number)) for number, frame in enumerate(shown)]
    return {"chunks": schedule.chunks, "gaps": gaps(schedule, shown), "frames": moments}


def _moment(frame: Frame, said: str) -> dict[str, Any]:
    """One frame. A message is source, target, first chunk, lane, then what the target has of it.

    That is a sum for each chunk of the message, as a number whose bit d stands for device d.
    """
    messages = [
        [t.source, t.target, t.chunks.start, lane, *(frame.held[t.target][i] for i in t.chunks)]
        for t, lane in zip(frame.transfers, frame.lanes, strict=True)
    ]
    adds = all(t.adds for t in frame.transfers)
    return {"words": said, "sent": frame.busiest, "adds": adds, "messages": messages}


def rounds(assets: str) -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    algorithm, devices = FIRST_SHOWN
    return figure(
        "rounds",
        "An allreduce, round by round",
        assets,
        still=allreduce(*FIRST_SHOWN),
        controls=[
            [
                choice("algorithm", list(SCHEDULES), algorithm),
                choice("devices", [str(k) for k in DEVICES], str(devices)),
            ],
            buttons("play"),
            [slider("round", 0, 1000)],
        ],
        body=BODY,
        data=data(),
    )
