"""What a fast framework should reach here, each target a ratio within one run."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.plan import D2L, FABRIC, FABRIC_ALONE, HIGH_LEVEL, Rivals
from bench.results import Bench, ratio
from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import SPECS
from common.chapters.operations import training_operations
from common.chapters.strategies import STRATEGIES

Figure = Callable[[Bench, str], float]
"""Of a benchmark and a framework. Raises LookupError if it was not measured."""


@dataclass(frozen=True)
class Target:
    """A figure of every framework, and what it should be: at least, or at most, its limit."""

    what: str
    figure: Figure
    limits: dict[str, float]
    at_least: bool

    def cell(self, bench: Bench, framework: str) -> str:
        """The figure, and whether it is as good as it should be."""
        try:
            value = self.figure(bench, framework)
        except LookupError:
            return ""
        limit = self.limits[framework]
        good = value >= limit if self.at_least else value <= limit
        return f"{value:.2f} {'✓' if good else '✗'}"

    def bound(self) -> str:
        """The limits in words."""
        values = sorted(set(self.limits.values()), reverse=True)
        return f"{'≥' if self.at_least else '≤'} {' or '.join(f'{value:g}' for value in values)}"


def against(rivals: Rivals, chapter: str) -> Figure:
    """Images per second, over those of the framework's rival on as many devices."""

    def figure(bench: Bench, framework: str) -> float:
        contenders = "ours", rivals.contenders[framework]
        both = (bench.of(framework, chapter, each, rivals.devices) for each in contenders)
        return ratio("images_per_second", *both)

    return figure


def against_fastest(bench: Bench, framework: str) -> float:
    """Seconds of an epoch of LeNet, over those of the fastest framework."""
    ours = bench.of(framework, "scratch", "ours")
    timed = [each for each in bench.samples if (each.chapter, each.devices) == ("scratch", 1)]
    return max(ratio("epoch", ours, each) for each in timed if each.contender == "ours")


def share_of_rate(chapter: str) -> Figure:
    """Operations per second of the model's arithmetic, over those of a matrix product."""

    def figure(bench: Bench, framework: str) -> float:
        operations = training_operations(SPECS[chapter].of_the_book())
        rate = bench.of(framework, chapter, "ours").median("images_per_second") * operations
        return rate / bench.machine_rate()

    return figure


def two_devices(chapter: str) -> Figure:
    """The time on two devices over that on one, at the same global batch."""

    def figure(bench: Bench, framework: str) -> float:
        one, two = (bench.of(framework, chapter, "ours", devices) for devices in (1, 2))
        return ratio("epoch", two, one)

    return figure


def two_devices_split(bench: Bench, framework: str) -> float:
    """The same of the strategy of which it is the most."""
    both = ([bench.of(framework, "strategies", each, k) for each in STRATEGIES] for k in (1, 2))
    return max(ratio("epoch", two, one) for one, two in zip(*both, strict=True))


def data_share(bench: Bench, framework: str) -> float:
    """The minibatches' share of an epoch of LeNet."""
    return bench.of(framework, "scratch", "ours").median("data_share")


def help_time(bench: Bench, framework: str) -> float:
    """The seconds that --help takes."""
    return bench.of(framework, "", "machine").median("help")


def first_step(bench: Bench, framework: str) -> float:
    """The seconds to the first step of LeNet, over 1.5 times the framework's import and 3 s."""
    imported = bench.of(framework, "", "machine").median("import")
    return bench.of(framework, "scratch", "ours").median("first_step") / (1.5 * imported + 3)


def everywhere(limit: float) -> dict[str, float]:
    """The same limit in all frameworks."""
    return dict.fromkeys(FRAMEWORKS, limit)


def over(chapter: str, what: str, rivals: Rivals, least: float = 1) -> Target:
    """At least so many times as fast as rivals."""
    title = f"{SPECS[chapter].net}: images/s over {what}"
    return Target(title, against(rivals, chapter), everywhere(least), True)


def of_both(chapter: str, d2l: tuple[str, float], fast: float, slow: float) -> tuple[Target, ...]:
    """What both chapters aim at; `fast` and `slow` are shares of the matrix rate.

    `d2l` names what is taken of the book's package, and says how far it should lie behind.
    """
    title = SPECS[chapter].net
    shares = {"pytorch": fast, "tensorflow": fast, "jax": slow, "mxnet": slow}
    return (
        over(chapter, "its high-level loop's", HIGH_LEVEL),
        over(chapter, d2l[0], D2L, d2l[1]),
        over(chapter, "Fabric's, 2 devices", FABRIC),
        Target(f"{title}: share of the matrix rate", share_of_rate(chapter), shares, True),
        Target(f"{title}: 2 devices over 1", two_devices(chapter), everywhere(1.1), False),
    )


TARGETS = (
    *of_both("scratch", ("the d2l loader's loop", 2), 0.4, 0.2),
    Target("LeNet: epoch over the fastest framework's", against_fastest, everywhere(2), False),
    Target("LeNet: data's share of an epoch", data_share, everywhere(0.05), False),
    Target("LeNet: first step over 1.5 imports + 3 s", first_step, everywhere(1), False),
    *of_both("concise", ("the d2l package's net and loop", 1), 0.65, 0.4),
    Target("LeNet, split: 2 devices over 1, at most", two_devices_split, everywhere(1.5), False),
    Target("--help: seconds", help_time, everywhere(0.5), False),
)

ON_GPUS = tuple(
    over(chapter, what, rivals)
    for chapter in ("scratch", "concise")
    for what, rivals in (("its high-level loop's", HIGH_LEVEL), ("Fabric's", FABRIC_ALONE))
)
"""What both chapters aim at on one GPU."""


def targets(bench: Bench) -> tuple[Target, ...]:
    """What a fast framework should reach where a benchmark was measured."""
    return ON_GPUS if bench.on_gpus() else TARGETS
