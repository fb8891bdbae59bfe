"""The figure in which a reader steps through an allreduce: its data, and its HTML.

Python walks the schedules; `docs/_static/stepper.js` draws what it is given. Without scripts the
reader sees the storyboard of a ring.
"""

import json
from typing import Any, Final

from common.drawing.theme import style
from common.parallel.schedules import SCHEDULES, Schedule
from notebooks.drawing.frames import Frame, frames, gaps, words
from notebooks.drawing.pictures import allreduce

DEVICES: Final = range(2, 17)
"""The numbers of devices to choose from."""

FIRST_SHOWN: Final = ("ring", 4)
"""The algorithm and the number of devices that a reader sees first."""

BUTTONS: Final = ("first", "back", "next", "last", "play")


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


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has `stepper.js`."""
    content = json.dumps(data(), separators=(",", ":"))
    return f"""<figure class="stepper picture">
<style>{style()}</style>
<div class="stepper-still">
{allreduce(*FIRST_SHOWN)}
</div>
<div class="stepper-live" role="group" aria-label="An allreduce, round by round" hidden>
<p class="stepper-row">
{_select("algorithm", list(SCHEDULES), FIRST_SHOWN[0])}
{_select("devices", [str(k) for k in DEVICES], str(FIRST_SHOWN[1]))}
</p>
<p class="stepper-row">
{buttons()}
</p>
<p class="stepper-row">
<label>round <input type="range" min="0" value="0" autocomplete="off"></label>
</p>
<p class="stepper-words" aria-live="polite" aria-atomic="true"></p>
<p class="stepper-sent"></p>
<div class="stepper-stage" tabindex="0" role="group" aria-label="Arrow keys step"></div>
<p class="stepper-legend"></p>
</div>
<script type="application/json">{content}</script>
<script defer src="{assets}/stepper.js"></script>
</figure>
"""


def _select(name: str, choices: list[str], chosen: str) -> str:
    """A list to choose from, with its label."""
    options = [
        f"<option{' selected' if each == chosen else ''}>{each}</option>" for each in choices
    ]
    chooser = f'<select name="{name}" autocomplete="off">{"".join(options)}</select>'
    return f"<label>{name} {chooser}</label>"


def buttons() -> str:
    """The buttons of what goes step by step."""
    made = [f'<button type="button" name="{name}">{name}</button>' for name in BUTTONS]
    return "\n".join(made)
