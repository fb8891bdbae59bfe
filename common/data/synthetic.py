"""The `synthetic` data set: drawn garments for machines that cannot fetch Fashion-MNIST.

Ten classes in Fashion-MNIST's order, 28 x 28 pixels, uint8, white cloth on black.

The bytes must not depend on the NumPy release or the processor. So chance comes from RandomState's
random_sample and permutation alone, whose streams are frozen, and the arithmetic is float64
+ - * / sqrt floor, comparisons and clip, each of which has one result only under IEEE 754.
"""

from collections.abc import Iterator, Sequence
from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Number = Floats | float
Garment = tuple[Floats, Floats]  # the silhouette, and the seams or prints that are darker on it

SIDE, PIXELS_PER_UNIT = 28, 13.0
BLOCK = 64  # images drawn at once, few enough for the cache; another number draws other images


class Canvas:
    """A canvas on which n random shapes are drawn at once, pixel by pixel.

    A shape is a signed distance, positive inside. Each pixel has its place (x, y) on its garment,
    (n, 28, 28): x runs from -1 (left) to 1 (right), y from -1 (top) to 1; `half` is |x|.

    `drawn`, (count,), says which n images of a batch are drawn; the others take their share of
    chance, too, so that each image is the same whatever else is drawn.
    """

    def __init__(self, chance: np.random.RandomState, drawn: NDArray[np.bool_]) -> None:
        self.chance, self.drawn = chance, drawn
        pixel = (np.arange(SIDE, dtype=np.float64) - (SIDE - 1) / 2.0) / PIXELS_PER_UNIT
        size, width, slant = self.vary(0.8, 1.08), self.vary(0.85, 1.12), self.vary(-0.12, 0.12)
        self.y = (pixel[:, np.newaxis] - self.vary(-0.1, 0.1)) / size + np.zeros(SIDE)
        self.x = (pixel - self.vary(-0.1, 0.1)) / (size * width) + self.y * slant
        self.half = np.abs(self.x)

    def random(self, *shape: int) -> Floats:
        """Numbers in [0, 1), of this shape for each image: (n, ...)."""
        chosen: Floats = self.chance.random_sample((len(self.drawn), *shape))[self.drawn]
        return chosen

    def vary(self, low: float, high: float) -> Floats:
        """One number per image, uniform in [low, high): shape (n, 1, 1)."""
        # RandomState.uniform would scale in C, where a compiler may fuse the multiply and the add.
        return low + (high - low) * self.random(1, 1)

    def some(self, share: float) -> Floats:
        """1.0 for about `share` of the images and 0.0 for the others: shape (n, 1, 1)."""
        return (self.vary(0.0, 1.0) < share).astype(np.float64)

    def polygon(self, x: Floats, *corners: tuple[Number, Number]) -> Floats:
        """A convex polygon, its corners clockwise as seen; x: `self.x`, or `self.half`."""
        inside = np.full_like(x, np.inf)
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
            dx, dy = np.subtract(x1, x0), np.subtract(y1, y0)
            distance = dx * self.y - dy * x + (dy * x0 - dx * y0)
            inside = np.minimum(inside, distance / np.sqrt(dx * dx + dy * dy))
        return inside

    def ellipse(self, y: Number, width: Number, height: Number) -> Floats:
        """An ellipse around (0, y), with its half axes."""
        across, down = self.x / width, (self.y - y) / height
        inside: Floats = (1.0 - np.sqrt(across * across + down * down)) * np.minimum(width, height)
        return inside


def band(value: Floats, low: Number, high: Number) -> Floats:
    """Where `value` lies between `low` and `high`."""
    return np.minimum(value - low, high - value)


def _top(c: Canvas, width: Floats, hem: Floats, flare: Number, sleeve: Floats) -> Floats:
    """Torso and sleeves; a sleeve of length 1 hangs to the hip, one of 0.3 to the elbow."""
    shoulder, thick = width + 0.05, c.vary(0.17, 0.26)
    x, y = shoulder + c.vary(0.25, 0.42) * sleeve, -0.65 + 1.3 * sleeve
    torso = (-0.1, -0.8), (0.28, -0.8), (width, -0.6), (width + flare, hem), (-0.1, hem)
    arm = (0.25, -0.8), (shoulder, -0.65), (x, y), (x - thick, y + 0.06), (width - 0.1, -0.3)
    return np.maximum(c.polygon(c.half, *torso), c.polygon(c.half, *arm))


def _t_shirt(c: Canvas) -> Garment:
    body = _top(c, c.vary(0.4, 0.52), c.vary(0.65, 0.9), 0.0, c.vary(0.18, 0.42))
    motif = c.ellipse(c.vary(-0.3, 0.1), 0.22, c.vary(0.1, 0.25)) - c.some(0.6)
    return np.minimum(body, -c.ellipse(-0.85, c.vary(0.15, 0.26), c.vary(0.1, 0.25))), motif


def _trouser(c: Canvas) -> Garment:
    hem, ankle, crotch = c.vary(0.3, 0.5), c.vary(0.16, 0.28), c.vary(-0.55, -0.25)
    legs = (-0.1, -0.92), (c.vary(0.25, 0.36), -0.92), (hem, 0.92), (hem - ankle, 0.92), (0, crotch)
    return c.polygon(c.half, *legs), np.minimum(0.03 - c.half, crotch - c.y)


def _pullover(c: Canvas) -> Garment:
    hem = c.vary(0.65, 0.9)
    body = _top(c, c.vary(0.4, 0.54), hem, 0.0, c.vary(0.8, 1.1))
    neck = c.ellipse(-0.85, c.vary(0.13, 0.22), c.vary(0.06, 0.14))
    return np.minimum(body, -neck), band(c.y, hem - 0.14, hem - 0.06)


def _dress(c: Canvas) -> Garment:
    waist, height, flare = c.vary(0.16, 0.28), c.vary(-0.3, 0.0), c.vary(0.28, 0.6)
    bust = (-0.1, -0.92), (0.3, -0.92), (0.3, -0.5), (waist, height), (-0.1, height)
    skirt = (-0.1, height), (waist, height), (flare, 0.95), (-0.1, 0.95)
    sleeves = _top(c, waist + 0.14, height, 0.0, c.vary(0.15, 0.9)) - 9.0 * c.some(0.7)
    body = reduce(np.maximum, (c.polygon(c.half, *bust), c.polygon(c.half, *skirt), sleeves))
    body = np.minimum(body, -c.ellipse(-0.85, 0.18, c.vary(0.1, 0.35)))
    return body, band(c.y, height, height + 0.08)


def _coat(c: Canvas) -> Garment:
    body = _top(c, c.vary(0.42, 0.54), c.vary(0.8, 0.98), c.vary(-0.04, 0.1), c.vary(0.9, 1.15))
    lapel = (-0.1, -0.9), (c.vary(0.14, 0.24), -0.9), (0.0, c.vary(-0.5, 0.0))
    seam = np.maximum(0.045 - c.half, c.polygon(c.half, *lapel))
    return np.minimum(body, -c.ellipse(-0.85, 0.1, 0.08)), seam


def _sandal(c: Canvas) -> Garment:
    heel, thick, top = c.vary(-0.1, 0.45), c.vary(0.1, 0.18), c.vary(-0.65, -0.3)
    toe, ankle = c.vary(-0.75, -0.45), c.vary(0.25, 0.6)
    sole = (-0.95, 0.45), (0.9, heel), (0.95, heel + thick), (-0.9, 0.45 + thick)
    post = (0.6, heel), (0.95, heel), (0.9, 0.65), (c.vary(0.6, 0.8), 0.65)
    front = (ankle - 0.1, top), (ankle + 0.1, top), (toe + 0.2, 0.45), (toe, 0.45)
    back = (ankle - 0.1, top), (ankle + 0.1, top), (0.9, heel + 0.1), (0.72, heel + 0.1)
    strap = (toe + 0.1, 0.15), (toe + 0.3, 0.1), (toe + 0.55, 0.4), (toe + 0.35, 0.4)
    parts = (c.polygon(c.x, *part) for part in (sole, post, front, back, strap))
    return reduce(np.maximum, parts), band(c.x, toe + 0.1, toe + 0.2)


def _shirt(c: Canvas) -> Garment:
    sleeve = np.where(c.some(0.65) < 1.0, c.vary(0.2, 0.45), c.vary(0.8, 1.1))
    body = _top(c, c.vary(0.38, 0.5), c.vary(0.7, 0.95), c.vary(-0.05, 0.08), sleeve)
    collar = (0.05, -0.95), (0.24, -0.92), (0.2, -0.6), (0.08, -0.68)
    opening = c.polygon(c.half, (-0.1, -1.0), (0.1, -1.0), (0.0, c.vary(-0.65, -0.4)))
    buttons = np.minimum(0.03 - c.half, c.vary(-0.2, 0.95) - c.y)
    return np.minimum(np.maximum(body, c.polygon(c.half, *collar)), -opening), buttons


def _sneaker(c: Canvas) -> Garment:
    toe, top, rim = c.vary(0.05, 0.25), c.vary(-0.4, -0.15), c.vary(-0.15, 0.15)
    front = (-0.85, toe), (rim, top), (0.4, top), (0.4, 0.55), (-0.97, 0.55)
    back = (0.0, 0.0), (0.9, top - 0.05), (0.95, 0.55), (0.0, 0.55)
    stripe = np.minimum(band(c.x + 0.5 * c.y, 0.0, 0.15), 0.3 - c.y) - c.some(0.5)
    body = np.maximum(c.polygon(c.x, *front), c.polygon(c.x, *back))
    return body, np.maximum(band(c.y, 0.33, 0.4), stripe)


def _bag(c: Canvas) -> Garment:
    width, top, bottom = c.vary(0.6, 0.92), c.vary(-0.35, 0.05), c.vary(0.55, 0.9)
    body = (-0.1, top), (width + c.vary(-0.15, 0.1), top), (width, bottom), (-0.1, bottom)
    handle = band(c.ellipse(top, c.vary(0.3, 0.55), c.vary(0.35, 0.65)), 0.0, 0.11)
    return np.maximum(c.polygon(c.half, *body), handle), band(c.y, top + 0.25, top + 0.32)


def _boot(c: Canvas) -> Garment:
    top, shin, toe = c.vary(-0.92, -0.45), c.vary(0.0, 0.2), c.vary(0.1, 0.3)
    shaft = (shin, top), (0.8, top), (0.88, 0.6), (shin - 0.1, 0.6)
    foot = (-0.85, toe), (shin, -0.2), (0.5, 0.0), (0.5, 0.6), (-0.95, 0.6)
    heel = (c.vary(0.4, 0.65), 0.55), (0.88, 0.55), (0.85, 0.85), (0.6, 0.85)
    parts = (c.polygon(c.x, *part) for part in (shaft, foot, heel))
    return reduce(np.maximum, parts), band(c.y, 0.45, 0.52)


GARMENTS = _t_shirt, _trouser, _pullover, _dress, _coat, _sandal, _shirt, _sneaker, _bag, _boot


def _cloth(c: Canvas) -> Floats:
    """Brightness in [0, 1]: a shade, light from one side, stripes, weave and a hidden patch."""
    row = np.floor(c.y * c.vary(4.0, 9.0))
    stripes = (row - 2.0 * np.floor(row / 2.0)) * c.some(0.25) * c.vary(0.1, 0.5)
    weave = c.random(SIDE, SIDE) * c.vary(0.05, 0.5)
    shade = c.vary(0.35, 1.0) * (1.0 + c.x * c.vary(-0.25, 0.25))
    across = np.abs(c.x - c.vary(-0.8, 0.8)) < c.vary(0.1, 0.35) * c.some(0.35)
    down = np.abs(c.y - c.vary(-0.8, 0.8)) < c.vary(0.1, 0.35)
    return np.clip(np.where(across & down, 0.0, shade * (1.0 - stripes) * (1.0 - weave)), 0.0, 1.0)


def _images(label: int, drawn: NDArray[np.bool_], chance: np.random.RandomState) -> Bytes:
    canvas = Canvas(chance, drawn)
    cover, seam = (np.clip(d * PIXELS_PER_UNIT + 0.5, 0.0, 1.0) for d in GARMENTS[label](canvas))
    light = cover * (1.0 - seam * canvas.vary(0.0, 0.6)) * _cloth(canvas)
    images: Bytes = np.floor(light * 255.0 + 0.5).astype(np.uint8)
    return images


def _blocks(examples: int) -> Iterator[tuple[int, slice]]:
    """What is drawn at once: a label, and the places of some of its examples."""
    for label in range(len(GARMENTS)):
        for start in range(label, examples, len(GARMENTS) * BLOCK):
            yield label, slice(start, start + len(GARMENTS) * BLOCK, len(GARMENTS))


def _split(examples: int, first: int | None, seed: Sequence[int]) -> tuple[Bytes, Bytes]:
    labels = (np.arange(examples) % len(GARMENTS)).astype(np.uint8)
    images, drawn = np.zeros((examples, SIDE, SIDE), np.uint8), np.zeros(examples, np.bool_)
    chance, states = np.random.RandomState(seed), []
    for label, block in _blocks(examples):
        states.append(chance.get_state())
        _images(label, drawn[block], chance)  # none is drawn yet: all only take their share
    order = chance.permutation(examples)[:first]
    drawn[order] = True
    for state, (label, block) in zip(states, _blocks(examples), strict=True):
        if drawn[block].any():
            chance.set_state(state)
            images[block][drawn[block]] = _images(label, drawn[block], chance)
    return images[order], labels[order]


@cache
def synthetic(
    train_examples: int = 12_800,
    test_examples: int = 2_000,
    *,
    first: tuple[int | None, int | None] = (None, None),
) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """Draw train images, train labels, test images and test labels.

    Images are (n, 28, 28) uint8, labels (n,) uint8 in 0..9, shuffled and balanced to within one.
    `first`: so many of the train and of the test examples alone, which takes less time; None: all.
    They are drawn once: processes that are forked later have them.
    """
    train = _split(train_examples, first[0], [0, 0])
    return *train, *_split(test_examples, first[1], [0, 1])
