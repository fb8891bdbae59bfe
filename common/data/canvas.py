"""A canvas on which a batch of random shapes is drawn at once, pixel by pixel.

A shape is a signed distance, positive inside; x runs from -1 (left) to 1 (right), y from -1 (top)
to 1. The arithmetic keeps to what `common.data.synthetic` promises: the same bytes everywhere.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Number = Floats | float

SIDE, PIXELS_PER_UNIT = 28, 13.0


class Canvas:
    """Each pixel's place (x, y) on its garment, (n, 28, 28); `half`, |x|, mirrors a shape.

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
