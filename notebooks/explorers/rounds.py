"""An allreduce, round by round, also of so many devices that a cell only counts them."""

from typing import Final

from common.parallel.schedules import SCHEDULES
from notebooks.drawing.frames import words
from notebooks.drawing.storyboard import Board, panel
from notebooks.explorers.forms import Choice, Form, answer, drawing, room, select, slider, values

FORM: Final[Form] = [
    [select("algorithm", SCHEDULES.keys(), "ring"), select("devices", map(str, range(2, 17)), "4")],
    [slider("round")],
]


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    schedule = SCHEDULES[chosen["algorithm"]](int(chosen["devices"]))
    board, last = Board(schedule, room(choice)), len(schedule.rounds)
    chosen["round"] = number = min(chosen["round"], last)
    sent = [f"{100 * each.busiest / schedule.chunks:.0f}\u00a0%" for each in board.moments]
    told = words(schedule, number)
    cells = (
        "A cell names the devices that it sums; “sum” is the sum of all."
        if board.named
        else "The number in a cell says how many devices it sums."
    )
    rows = "a row, a chunk of it" if schedule.chunks > 1 else "it is not cut"
    width = board.labels + board.pitch * schedule.devices
    blocks = [
        ("words", told),
        (
            "sent",
            f"Sent by the busiest device: {sent[number]} of the vector’s bytes ({sent[last]} in "
            f"all {last} rounds).",
        ),
        ("stage", drawing(width, board.tops[-1] + 4, told, [panel(board, number)])),
        (
            "key",
            f"A column is a device’s vector; {rows}. {cells} A thin outline: sent. A thick "
            "outline: received. A solid arrow adds, a dashed one copies.",
        ),
    ]
    return answer(blocks, chosen, last=last)
