"""An allreduce as a storyboard: a panel for the start and for each round, drawn from its frames."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from common.drawing import svg
from common.parallel.schedules import SCHEDULES, Schedule, Transfer
from notebooks.drawing.frames import devices_in, frames, gaps, words

WIDTH: Final = 480
MARGIN: Final = 14
BETWEEN: Final = 14
LABELS: Final = 19
"""The width of the chunks' names."""

WIDEST: Final = 113
"""The largest width of a device."""

HEAD: Final = 40
"""The space above the chunks of a panel, for the round and the devices' names."""

CELL, FIRST, LANE = 18, 9, 6
"""The height of a chunk, the distance of the first arrow below it, and that of further ones."""

LEGEND: Final = 84


class Board:
    """The geometry that all panels share; `width` is that of one panel, if it is alone."""

    def __init__(self, schedule: Schedule, width: float = 0) -> None:
        self.schedule, self.moments = schedule, frames(schedule)
        long = schedule.chunks > 1 and len(self.moments) > 3
        self.columns = 2 if not width and (long or schedule.devices == 2) else 1  # side by side
        self.panel = width or (WIDTH - 2 * MARGIN - BETWEEN * (self.columns - 1)) / self.columns
        # The width of the chunks' names.
        self.labels = LABELS + 8 * (schedule.chunks > 10) if schedule.chunks > 1 else 0
        self.pitch = min(WIDEST, (self.panel - self.labels) / schedule.devices)
        sums = {mask for frame in self.moments for chunks in frame.held for mask in chunks}
        longest = max((self.spelled(mask) for mask in sums), key=len)
        self.named = svg.fits(longest, self.pitch - 6)  # else cells count devices
        lanes = gaps(schedule, self.moments)
        heights = [CELL + (FIRST + LANE * (n - 1) if n else 0) + LANE for n in lanes]
        # Where each chunk begins within a panel, and where the panel ends.
        self.tops = list(accumulate(heights, initial=float(HEAD)))
        self.step = self.tops[-1] + 14  # from one row of panels to the next

    def label(self, mask: int) -> str:
        """The text of a cell."""
        return self.spelled(mask) if self.named else str(len(devices_in(mask)))

    def spelled(self, mask: int) -> str:
        """The devices whose values are in a sum."""
        devices = devices_in(mask)
        return "sum" if len(devices) == self.schedule.devices else "+".join(map(str, devices))

    def share(self, mask: int) -> float:
        """How dark a cell is, from 0 to 1: the more devices, the darker."""
        count, k = len(devices_in(mask)), self.schedule.devices
        return 1 if count == k else 0.1 + 0.4 * (count - 1) / max(1, k - 2)


def allreduce(algorithm: str, k: int = 4) -> str:
    """The rounds of an allreduce between 2 to 4 devices, as SVG."""
    schedule = SCHEDULES[algorithm](k)
    board = Board(schedule)
    texts = [words(schedule, number) for number in range(len(board.moments))]
    rows = -(-len(board.moments) // board.columns)
    heading = svg.text(
        MARGIN, 28, f"Allreduce: {algorithm}, {k} devices", "bold", size=15, anchor="start"
    )
    panels = []
    for number in range(len(board.moments)):
        row, column = divmod(number, board.columns)
        x = MARGIN + column * (board.panel + BETWEEN)
        panels.append(panel(board, number, x, 46 + row * board.step))
    below = 46 + rows * board.step
    title = f"Allreduce, {algorithm}, {k} devices, round by round"
    parts = [heading, *panels, *_legend(board, below)]
    return svg.picture(WIDTH, below + LEGEND, title, " ".join(texts), parts)


def panel(board: Board, number: int, x: float = 0, y: float = 0) -> str:
    """One frame: the sums on every device, and the arrows that led to them."""
    frame, last = board.moments[number], len(board.moments) - 1
    does = "add" if number and frame.transfers[0].adds else "copy"
    round_ = f"Round {number} of {last}: {does}" if number else "Start"
    parts = [svg.text(x + board.labels, y + 14, round_, "bold", size=13, anchor="start")]
    parts += _names(board, x, y)
    for device, chunks in enumerate(frame.held):
        for chunk, mask in enumerate(chunks):
            at = x + board.labels + device * board.pitch + 1, y + board.tops[chunk]
            label = board.label(mask)
            parts.append(svg.box((*at, board.pitch - 2, CELL), label, "cell", board.share(mask)))
    for t, lane in zip(frame.transfers, frame.lanes, strict=True):
        parts.append(_message(board, t, lane, x + board.labels, y))
    return svg.group(parts, "panel")


def _names(board: Board, x: float, y: float) -> Iterator[str]:
    """The names of devices and chunks along the edges of a panel."""
    prefixes, last = ("device ", "dev ", "d", ""), board.schedule.devices - 1
    long = next(each for each in prefixes if not each or svg.fits(f"{each}{last}", board.pitch))
    for device in range(board.schedule.devices):
        middle = x + board.labels + (device + 0.5) * board.pitch
        yield svg.text(middle, y + HEAD - 7, f"{long}{device}", "muted")
    for chunk in range(board.schedule.chunks if board.schedule.chunks > 1 else 0):
        yield svg.text(x, y + board.tops[chunk] + 13, f"c{chunk}", "muted", anchor="start")


def _message(board: Board, t: Transfer, lane: int, x: float, y: float) -> str:
    """A message: a thin outline at its source, a thick one at its target, and an arrow below."""
    top = y + board.tops[t.chunks.start]
    bottom = y + board.tops[t.chunks.stop - 1] + CELL
    edges = [x + device * board.pitch + 1 for device in (t.source, t.target)]
    outlines = [
        svg.rect((edge, top, board.pitch - 2, bottom - top), part)
        for edge, part in zip(edges, ("given", "got"), strict=True)
    ]
    source, target = (edge + board.pitch / 2 - 1 for edge in edges)
    line = f"M{source:.1f} {bottom:.1f}v{FIRST + LANE * lane}H{target:.1f}V{bottom + 6:.1f}"
    head = f"M{target:.1f} {bottom + 1:.1f}l-3.5 6h7Z"
    arrow = svg.path(line, "adds" if t.adds else "copies"), svg.path(head, "head")
    return svg.group([*outlines, *arrow, svg.dot(source, bottom, "head")], "arrow")


def _legend(board: Board, y: float) -> Iterator[str]:
    """The meaning of shapes and numbers."""
    yield svg.path(f"M{MARGIN} {svg.number(y)}H{WIDTH - MARGIN}", "rule")
    cut = "; c0, c1, … are its chunks" if board.schedule.chunks > 1 else ", whole"
    lines = (
        f"A column is a device's vector{cut}.",
        "A cell names the devices whose values are in its sum.",
        "A thin outline: sent. A thick outline: received.",
        "A solid arrow adds, a dashed one copies.",
    )
    for line, text in enumerate(lines):
        yield svg.text(MARGIN, y + 20 + 17 * line, text, "muted", anchor="start")
