"""The chapter's rule: plans that fit, and the share of the computing time that each waits."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from common.scaling.scenario import Scenario
from common.scaling.steps import CARDS


class Case(NamedTuple):
    """A transformer of `size` weights in `layers` of width `h`, and `nodes` of `n` devices.

    A device has `memory`, computes `speed` operations a second, sends `link` bytes a second in its
    node, and trains `sequences` of `s` tokens; a node sends `port` bytes a second.
    """

    size: float
    layers: int
    h: int
    nodes: int
    n: int
    sequences: int
    s: int
    speed: float
    memory: float
    link: float
    port: float


class Rated(NamedTuple):
    """A plan of `t * p` devices, or of ZeRO-3 on all, and its wait."""

    wait: float
    t: int
    p: int
    microbatches: int
    chunks: int
    recompute: str


def zero3(case: Case, m: int) -> Iterator[Rated]:
    """ZeRO-3 on all devices, in m microbatches."""
    k, tokens = case.nodes * case.n, case.s * case.sequences / m
    slowest = case.link if case.nodes == 1 else min(case.link, case.port)
    limit = (k - 1) / k * case.speed / slowest
    for recompute, kept in activations(case, tokens):
        state = (16 if m > 1 else 14) / k + 4 / case.layers  # gradients follow activations
        if state * case.size + kept < case.memory:
            more = 1 / 3 if recompute == "full" else 0.0
            yield Rated(max(more, limit / tokens - 1), 1, 1, m, 1, recompute)


def stages(case: Case, t: int, p: int, c: int) -> Iterator[Rated]:
    """Stages, p of t devices and c chunks: one in each of several nodes, or a line of all."""
    sharing = case.n if p == case.nodes else t
    link = case.link if case.nodes == 1 else min(case.link, case.port / sharing)
    m = case.sequences * t * p
    r = case.nodes * case.n // (t * p)
    most = 18 * case.layers * case.h * link / (p * case.speed)
    tensor = 2 * (t - 1) * case.speed / (9 * case.h * case.link)
    for recompute, kept in activations(case, case.s / t * (1 + (c > 1) / c)):
        fits = (4 + 12 / r) * case.size / (t * p) + kept < case.memory
        if fits and p * c <= case.layers and c <= max(1, most):
            wait = tensor + (p - 1) / m * (1 / c + 1 / most) + (recompute == "full") / 3
            yield Rated(wait, t, p, m, c, recompute)


def activations(case: Case, tokens: float) -> list[tuple[str, float]]:
    """The bytes that are kept of so many tokens, of all layers, without scores."""
    block = 34 * case.h * tokens
    return [("none", case.layers * block), ("full", case.layers * 2 * case.h * tokens + block)]


def best(case: Case) -> Rated:
    """The plan with the shortest wait. Raises ValueError if none fits."""
    rated = [
        plan
        for m in range(1, case.sequences + 1)
        if case.sequences % m == 0
        for plan in zero3(case, m)
    ]
    for t in (1, 2, 4, 8):
        if case.n % t == 0:
            lines = {case.nodes, case.nodes * case.n // t} - {1}
            rated += [x for p, c in product(lines, (1, 2, 4, 8)) for x in stages(case, t, p, c)]
    return min(rated)


def case_of(scenario: Scenario) -> Case:
    cluster, blocks = scenario.cluster(), scenario.network().blocks
    nodes, n = max(1, scenario.devices // scenario.node), min(scenario.node, scenario.devices)
    count = scenario.examples // scenario.devices // blocks.sequence
    memory = CARDS[str(scenario.card)]["memory"]
    sizes = scenario.parameters, blocks.count, blocks.hidden, nodes, n, count, blocks.sequence
    links = 1 / cluster.inside.per_byte, 1 / cluster.between.per_byte
    return Case(*sizes, cluster.speed, memory, *links)
