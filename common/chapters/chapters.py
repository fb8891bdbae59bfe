"""The chapters, by name. A further one is a line in `SPECS`."""

from typing import Final

from common.chapters.concise import CONCISE
from common.chapters.scratch import SCRATCH
from common.chapters.spec import ChapterSpec
from common.chapters.strategies import SPLIT
from common.chapters.suites import on_gpus

SPECS: Final[dict[str, ChapterSpec]] = {spec.name: spec for spec in (SCRATCH, CONCISE, SPLIT)}

CHAPTERS: Final = tuple(SPECS)

_ON_CPUS: Final = tuple(suite for spec in SPECS.values() for suite in spec.suites)

SUITES: Final = (*_ON_CPUS, *on_gpus(_ON_CPUS))
"""The suites that the sessions run; those on GPUs come after the ones that they repeat."""

SUITE_NAMES: Final = tuple(dict.fromkeys(suite.name for suite in SUITES))
