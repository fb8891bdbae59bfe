"""A folder with the figures of many seeds."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.seeds.spread import Spread, statistics

ACCURACIES = np.array(
    [[0.80, 0.81, 0.79, 0.80], [0.82, 0.82, 0.79, 0.81], [0.84, 0.83, 0.81, 0.85]]
)


def put(results: Path, **changes: Any) -> None:
    """The figures of three seeds beside the records, with some fields changed."""
    spread = Spread(
        chapter="scratch",
        preset="quick",
        devices=1,
        data="fashion-mnist",
        train_examples=4800,
        test_examples=2000,
        created="2026-11-22",
        seeds=[0, 1, 2],
        **statistics(ACCURACIES, FRAMEWORKS),
    )
    (results / "seeds").mkdir(exist_ok=True)
    content = json.dumps(spread.model_dump() | changes)
    (results / "seeds/seeds.json").write_text(content)
