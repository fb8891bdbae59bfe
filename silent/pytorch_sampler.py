"""DistributedSampler repeats examples until all processes have the same number.

Written: an evaluation on two processes of five examples, of which the first is classified wrongly.
Expected: the accuracy over five examples.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch.utils.data import DistributedSampler

from silent.report import report

RIGHT = np.array([0, 1, 1, 1, 1])


def accuracy(samplers: Sequence[Iterable[int]]) -> float:
    """The number of right examples over the number of all, each summed over processes."""
    shards = [RIGHT[list(sampler)] for sampler in samplers]
    return sum(shard.sum() for shard in shards) / sum(shard.size for shard in shards)


if __name__ == "__main__":
    padded = [DistributedSampler(RIGHT, 2, rank, shuffle=False) for rank in range(2)]
    results = {"DistributedSampler": accuracy(padded)}
    remedies = {"range(rank, n, k)": accuracy([range(rank, len(RIGHT), 2) for rank in range(2)])}
    report(f"torch {torch.__version__}", RIGHT.mean(), results, remedies)
