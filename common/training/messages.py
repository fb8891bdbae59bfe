"""What a run says: before it trains, and in the end."""

from collections.abc import Sequence

from common.chapters.operations import book_hours
from common.settings.config import Config
from common.training.loop import Outcome


def introduction(config: Config, preset: str, devices: Sequence[str]) -> str:
    """What is about to happen, in a line; `preset` is the one that was asked for."""
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    options = config.options.in_words()
    reason = f" (auto: {why(config)})" if preset == "auto" else ""
    return (
        f"{config.framework} {config.chapter}, preset {config.preset}{reason}: "
        f"{f'{options}, ' if options else ''}{length} of "
        f"{config.train_examples:,} {config.dataset} images, batch {config.batch_size}, "
        f"{config.rates()}, {config.dtype}, on {names(devices)}"
    )


def why(config: Config) -> str:
    """Why `auto` chose this preset."""
    if config.preset == "book":
        return "the book's own setting; --preset quick is shorter"
    hours = book_hours(config.chapter)
    return f"without a GPU the book's own, --preset book, takes about {hours:.0f} hours"


def closing_line(outcome: Outcome, devices: Sequence[str]) -> str:
    """The book's closing line."""
    last = outcome.epochs[-1]
    seconds = sum(epoch.seconds for epoch in outcome.epochs) / len(outcome.epochs)
    return f"test acc: {last.test_accuracy:.2f}, {seconds:.1f} sec/epoch on {names(devices)}"


def names(devices: Sequence[str]) -> str:
    """The devices as the book prints them."""
    return f"[{', '.join(devices)}]"
