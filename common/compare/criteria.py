"""What the runs of each chapter are compared with: a line in `CRITERIA` for each."""

from typing import Final

from common.compare import concise, scratch, strategies
from common.compare.tolerances import Criteria

CRITERIA: Final[dict[str, Criteria]] = {
    "scratch": scratch.CRITERIA,
    "concise": concise.CRITERIA,
    "strategies": strategies.CRITERIA,
}
