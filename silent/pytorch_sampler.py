"""DistributedSampler repeats examples until all processes have the same number.

Written: an evaluation on two processes of five examples, of which the first is classified wrongly.
Expected: the accuracy over five examples.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch.utils.data import DistributedSampler

from silent.telling import tell

RIGHT = np.array([0, 1, 1, 1, 1])


def accuracy(samplers: Sequence[Iterable[int]]) -> float:
    """What an allreduce of the numbers of right and of all examples comes to."""
    seen = [RIGHT[list(sampler)] for sampler in samplers]
    return sum(each.sum() for each in seen) / sum(each.size for each in seen)


if __name__ == "__main__":
    padded = [DistributedSampler(RIGHT, 2, rank, shuffle=False) for rank in range(2)]
    exact = [range(rank, len(RIGHT), 2) for rank in range(2)]
    came, instead = {"DistributedSampler": accuracy(padded)}, {"range(rank, n, k)": accuracy(exact)}
    tell(f"torch {torch.__version__}", RIGHT.mean(), came, instead)
