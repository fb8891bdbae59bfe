"""Which device has which tokens, and which keys it meets after how many hops of a ring."""

from itertools import product
from typing import Final

from common.drawing import plans, svg
from common.parallel.nets import transformer
from common.parallel.strategies import split

TOKENS, CELL, LEFT, TOP = 12, 15, 34, 46
"""The length of the sequence; the size of a cell; where a panel's cells begin."""

OWNERS: Final[list[plans.Style]] = [("cell", 0.35), ("sent-cell", 0.4), ("data-cell", 0.45)]
"""How each device's queries are drawn."""


def attention(devices: int = 3) -> str:
    """The attention of a sequence by tokens, side by side and in zigzag order, as SVG."""
    panels = [panel(devices, order) for order in ("contiguous", "zigzag")]
    shapes = [
        shape if not place else f'<g transform="translate({place * 234} 0)">{shape}</g>'
        for place, shapes in enumerate(panels)
        for shape in shapes
    ]
    notes = (
        "A row is a query, a column a key; its device is beside it. A number says",
        "after how many hops of the ring the query's device meets the key.",
    )
    height = TOP + (TOKENS + devices + 2) * CELL + 14
    for line, note in enumerate(notes):
        shapes.append(svg.text(LEFT - 20, height + 17 * line, note, "muted", anchor="start"))
    described = f"{TOKENS} tokens on {devices} devices. Numbers of scores by device and hop."
    return svg.picture(plans.WIDTH, height + 30, "Attention in a ring", described, shapes)


def panel(devices: int, order: str) -> list[str]:
    """The scores that a causal mask leaves, and their number by device and hop."""
    net = transformer(0, 1, 12, 3, tokens=TOKENS, sequence=TOKENS)
    plan = split(net, "context", devices, contiguous=order == "contiguous")
    owner = {token: i for i in range(devices) for token in plan.tokens_of(i)}
    shapes = [svg.text(LEFT, 28, order.capitalize(), "bold", size=14, anchor="start")]
    counts = [[0] * devices for _ in range(devices)]
    for query, key in product(range(TOKENS), repeat=2):
        x, y = LEFT + key * CELL, TOP + query * CELL
        if key == 0:
            shapes.append(svg.text(LEFT - 12, y + 11, str(owner[query]), "muted", size=10))
        if query == 0:
            shapes.append(svg.text(x + CELL / 2, TOP - 5, str(owner[key]), "muted", size=10))
        if key <= query:
            hop = (owner[query] - owner[key]) % devices
            counts[owner[query]][hop] += 1
            place = x, y, CELL - 1.0, CELL - 1.0
            part, share = OWNERS[owner[query] % len(OWNERS)]
            shapes.append(svg.rect(place, part, share=share))
            shapes.append(svg.text(x + CELL / 2, y + 11, str(hop), size=9))
    for device, row in enumerate(counts):
        told = ", ".join(f"hop {hop}: {count}" for hop, count in enumerate(row))
        y = TOP + (TOKENS + device + 1) * CELL + 4
        shapes.append(svg.text(LEFT - 20, y, f"device {device}: {told}", size=10, anchor="start"))
    return shapes
