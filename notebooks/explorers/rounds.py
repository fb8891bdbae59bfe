"""An allreduce, round by round, also of so many devices that a cell only counts them."""

from dataclasses import replace
from typing import Final

from common.drawing import svg
from common.drawing.plans import MARGIN, WIDTH
from common.parallel.schedules import SCHEDULES
from notebooks.drawing.storyboard import Board, words
from notebooks.explorers.forms import STEPS, Choice, Control, Form, answer, values

TITLE: Final = "An allreduce, round by round"

FORM: Final[Form] = [
    [Control("algorithm", "ring", SCHEDULES), Control("devices", 4, range(2, 17))],
    [Control("round", 0, STEPS)],
]

KEY: Final = """A column is a device’s vector; a row, a chunk of it. A thin outline: sent. A thick
outline: received. A solid arrow adds, a dashed one copies. A cell names the devices that it sums,
or, where many are, says how many."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    schedule = SCHEDULES[chosen["algorithm"]](chosen["devices"])
    board, last = Board(schedule, WIDTH - 2 * MARGIN), len(schedule.rounds)
    chosen["round"] = number = min(chosen["round"], last)
    sent = []  # by the busiest device
    for count in (number, last):
        traffic = replace(schedule, rounds=schedule.rounds[:count]).traffic(schedule.chunks)
        sent.append(f"{100 * max(traffic)[0] / schedule.chunks:.0f}\u00a0%")
    told = words(schedule, number)
    busiest = f"Sent by the busiest device: {sent[0]} of the vector’s bytes"
    shapes = [board.frame(number, MARGIN, 8)]
    drawn = svg.picture(WIDTH, board.tops[-1] + 16, TITLE, told, shapes)
    whole = f"{busiest} ({sent[1]} in all {last} rounds)."
    return answer(chosen, last=last, words=told, sent=whole, stage=drawn, key=KEY)
