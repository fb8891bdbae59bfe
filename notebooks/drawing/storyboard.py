"""An allreduce as a storyboard: a panel for the start and for each round.

The schedules are those that the frameworks train with, run by the same `execute`.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, chain
from typing import Final

from common.drawing import svg
from common.parallel.schedules import SCHEDULES, Round, Schedule, Transfer, execute

WIDTH, MARGIN, BETWEEN, LABELS, WIDEST = 480, 14, 14, 19, 113
"""Of the picture, of its edge, between two panels, of chunks' names, of a device at most."""

HEAD, CELL, FIRST, LANE, LEGEND = 40, 18, 9, 6, 84
"""Heights: above the chunks of a panel, of a chunk, of the first arrow below it and of further
ones, of the legend."""

LINES: Final = (
    "A cell names the devices whose values are in its sum.",
    "A thin outline: sent. A thick outline: received.",
    "A solid arrow adds, a dashed one copies.",
)

Sum = tuple[int, ...]
"""The devices whose values are in a sum."""


def sums(schedule: Schedule) -> list[list[list[Sum]]]:
    """The sums at the start and after each round, by device and chunk."""
    held: list[list[Sum]] = [[(i,)] * schedule.chunks for i in range(schedule.devices)]
    moments = []
    for transfers in ((), *schedule.rounds):
        single = replace(schedule, rounds=(transfers,))
        execute(single, held, lambda chunk, _: chunk, lambda a, b: tuple(sorted(a + b)))
        moments.append([list(chunks) for chunks in held])
    return moments


def lanes(transfers: Round) -> tuple[int, ...]:
    """For each message, the lane below its last chunk in which its arrow runs, 0 at the top.

    Arrows share a line only where they meet: all come from one device, or all go to one.
    """
    lines = [(t.chunks.stop, t.target if t.adds else t.source, t.chunks.start) for t in transfers]
    spans: dict[tuple[int, int, int], list[int]] = {}
    for line, t in zip(lines, transfers, strict=True):
        spans.setdefault(line, []).extend((t.source, t.target))
    chosen: dict[tuple[int, int, int], int] = {}
    ends: dict[int, list[int]] = {}
    for line in sorted(spans, key=lambda line: min(spans[line])):
        row = ends.setdefault(line[0], [])
        lane = next((i for i, end in enumerate(row) if end < min(spans[line])), len(row))
        row[lane : lane + 1] = [max(spans[line])]
        chosen[line] = lane
    return tuple(chosen[line] for line in lines)


def words(schedule: Schedule, number: int) -> str:
    """A round in words, counted from 1; the start at 0."""
    if number == 0:
        cut = "whole" if schedule.chunks == 1 else f"cut into {schedule.chunks} chunks"
        return f"Start: each of {schedule.devices} devices has a vector, {cut}."
    transfers, k = schedule.rounds[number - 1], schedule.devices
    share = Fraction(len(transfers[0].chunks), schedule.chunks)
    what = "the vector" if share == 1 else f"{share} of the vector"
    does = "added" if transfers[0].adds else "copied"
    way = f"device {', '.join(f'{t.source} to {t.target}' for t in transfers)}"
    if len(transfers) == k * (k - 1):
        way = "every device to every other"
    elif [t.target for t in transfers] == [(device + 1) % k for device in range(k)]:
        way = "every device to the next, the last to the first"
    return f"Round {number} of {len(schedule.rounds)}: {what} is {does}, from {way}."


class Board:
    """The geometry that all panels share; `width` is that of one panel, if it is alone."""

    def __init__(self, schedule: Schedule, width: float = 0) -> None:
        self.schedule, self.rounds, self.held = schedule, ((), *schedule.rounds), sums(schedule)
        chunks = schedule.chunks
        long = chunks > 1 and len(self.rounds) > 3
        self.columns = 2 if not width and (long or schedule.devices == 2) else 1  # side by side
        self.panel = width or (WIDTH - 2 * MARGIN - BETWEEN * (self.columns - 1)) / self.columns
        self.labels = LABELS + 8 * (chunks > 10) if chunks > 1 else 0
        self.pitch = min(WIDEST, (self.panel - self.labels) / schedule.devices)
        labels = {self.spelled(devices) for held in self.held for devices in chain(*held)}
        self.named = svg.fits(max(labels, key=len), self.pitch - 6)  # else cells count devices
        below = [0] * chunks  # of each chunk, the number of lanes, so that it stays in its place
        for transfers in schedule.rounds:
            for t, lane in zip(transfers, lanes(transfers), strict=True):
                below[t.chunks.stop - 1] = max(below[t.chunks.stop - 1], lane + 1)
        heights = [CELL + (FIRST + LANE * (n - 1) if n else 0) + LANE for n in below]
        # Where each chunk begins within a panel, and where the panel ends.
        self.tops = list(accumulate(heights, initial=float(HEAD)))

    def spelled(self, devices: Sum) -> str:
        """A sum in a cell."""
        return "sum" if len(devices) == self.schedule.devices else "+".join(map(str, devices))

    def cell(self, devices: Sum, x: float, y: float) -> str:
        """A chunk of a device: the more devices are in its sum, the darker."""
        count, k = len(devices), self.schedule.devices
        label = self.spelled(devices) if self.named else str(count)
        share = 1 if count == k else 0.1 + 0.4 * (count - 1) / max(1, k - 2)
        return svg.box((x + 1, y, self.pitch - 2, CELL), label, "cell", share)

    def message(self, t: Transfer, lane: int, x: float, y: float) -> str:
        """A message: a thin outline at its source, a thick one at its target, and an arrow."""
        top = y + self.tops[t.chunks.start]
        bottom = y + self.tops[t.chunks.stop - 1] + CELL
        edges = [x + device * self.pitch + 1 for device in (t.source, t.target)]
        outlines = [
            svg.rect((edge, top, self.pitch - 2, bottom - top), part)
            for edge, part in zip(edges, ("given", "got"), strict=True)
        ]
        source, target = (edge + self.pitch / 2 - 1 for edge in edges)
        line = f"M{source:.1f} {bottom:.1f}v{FIRST + LANE * lane}H{target:.1f}V{bottom + 6:.1f}"
        head = f"M{target:.1f} {bottom + 1:.1f}l-3.5 6h7Z"
        arrow = svg.path(line, "adds" if t.adds else "copies"), svg.path(head, "head")
        return svg.group([*outlines, *arrow, svg.dot(source, bottom, "head")], "arrow")

    def names(self, x: float, y: float) -> Iterator[str]:
        """The names of devices and chunks along the edges of a panel."""
        last = self.schedule.devices - 1
        names = "device ", "dev ", "d", ""
        long = next(name for name in names if not name or svg.fits(f"{name}{last}", self.pitch))
        for device in range(self.schedule.devices):
            middle = x + self.labels + (device + 0.5) * self.pitch
            yield svg.text(middle, y + HEAD - 7, f"{long}{device}", "muted")
        for chunk in range(self.schedule.chunks if self.labels else 0):
            yield svg.text(x, y + self.tops[chunk] + 13, f"c{chunk}", "muted", anchor="start")

    def frame(self, number: int, x: float = 0, y: float = 0) -> str:
        """A panel: the sums on every device, and the arrows that led to them."""
        transfers, last = self.rounds[number], len(self.rounds) - 1
        does = "add" if number and transfers[0].adds else "copy"
        round_ = f"Round {number} of {last}: {does}" if number else "Start"
        parts = [svg.text(x + self.labels, y + 14, round_, "bold", size=13, anchor="start")]
        parts += self.names(x, y)
        for device, chunks in enumerate(self.held[number]):
            for top, devices in zip(self.tops, chunks, strict=False):
                parts.append(self.cell(devices, x + self.labels + device * self.pitch, y + top))
        for t, lane in zip(transfers, lanes(transfers), strict=True):
            parts.append(self.message(t, lane, x + self.labels, y))
        return svg.group(parts, "panel")


def allreduce(algorithm: str, k: int = 4) -> str:
    """The rounds of an allreduce between 2 to 4 devices, as SVG."""
    schedule = SCHEDULES[algorithm](k)
    board = Board(schedule)
    count, step = len(board.rounds), board.tops[-1] + 14  # from one row of panels to the next
    title = f"Allreduce: {algorithm}, {k} devices"
    parts = [svg.text(MARGIN, 28, title, "bold", size=15, anchor="start")]
    for number in range(count):
        row, column = divmod(number, board.columns)
        x = MARGIN + column * (board.panel + BETWEEN)
        parts.append(board.frame(number, x, 46 + row * step))
    below = 46 + -(-count // board.columns) * step
    parts.append(svg.path(f"M{MARGIN} {svg.number(below)}H{WIDTH - MARGIN}", "rule"))
    cut = "; c0, c1, … are its chunks" if schedule.chunks > 1 else ", whole"
    for line, text in enumerate((f"A column is a device's vector{cut}.", *LINES)):
        parts.append(svg.text(MARGIN, below + 20 + 17 * line, text, "muted", anchor="start"))
    title = f"Allreduce, {algorithm}, {k} devices, round by round"
    texts = " ".join(words(schedule, number) for number in range(count))
    return svg.picture(WIDTH, below + LEGEND, title, texts, parts)
