"""The chapters, by name. Only the one that is asked for is loaded."""

from importlib import import_module
from typing import Final

from common.chapters.spec import ChapterSpec

CHAPTERS: Final = ("scratch", "concise", "strategies")


def spec(chapter: str) -> ChapterSpec:
    """What one of `CHAPTERS` is."""
    found: ChapterSpec = import_module(f"common.chapters.{chapter}").CHAPTER
    return found
