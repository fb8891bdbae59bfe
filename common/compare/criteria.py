"""What the runs of each chapter are held to. A further chapter is a line in `CRITERIA`."""

from typing import Final

from common.compare import concise, scratch
from common.compare.tolerances import Criteria

CRITERIA: Final[dict[str, Criteria]] = {
    "scratch": scratch.CRITERIA,
    "concise": concise.CRITERIA,
}
