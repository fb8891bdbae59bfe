"""All bugs by name, in the order of the table."""

from typing import Final

from planted import concise, native, scratch, strategies
from planted.bug import PLANTS, Bug

MODULES: Final = (scratch, concise, strategies, native)
CONTROL: Final = Bug("control", "Make no mistake", "")

BUGS: Final[dict[str, Bug]] = {bug.name: bug for bug in (CONTROL, *PLANTS)}
