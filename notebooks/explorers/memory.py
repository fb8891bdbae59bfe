"""What each device keeps and sends in a step of a transformer, on some card, by every strategy."""

from dataclasses import replace
from html import escape
from math import ceil
from typing import Final

from common.chapters.strategies import SCHEDULES
from common.drawing import plans
from common.parallel.ledger import KEPT
from common.parallel.nets import ATTENTION, RECOMPUTE
from common.parallel.strategies import OF_ANY_NET
from common.scaling.scenario import OPTIMIZERS, PRECISIONS, Scenario
from common.scaling.steps import CARDS, LINKS
from notebooks.drawing.steps import compare
from notebooks.explorers.forms import Choice, Control, Form, answer, values

TITLE: Final = "What each device keeps and sends"

FORM: Final[Form] = [
    [
        Control("millions", 7000, range(100, 10**6 + 1), "millions of weights"),
        Control("layers", 32, range(1, 101)),
        Control("sequence", 2048, range(1, 10**6 + 1)),
        Control("examples", 16_384, range(1, 2**24 + 1), "tokens of a step"),
        Control("attention", "flash", ATTENTION),
        Control("recompute", "none", RECOMPUTE),
        Control("precision", "mixed", PRECISIONS),
        Control("optimizer", "adam", OPTIMIZERS),
    ],
    [
        Control("strategy", "zero3", OF_ANY_NET),
        Control("devices", 8, range(1, 65)),
        Control("replicas", 1, range(1, 65)),
        Control("microbatches", 0, range(65)),
        Control("schedule", "1f1b", SCHEDULES),
        Control("card", "a100", CARDS),
        Control("link", "nvlink", LINKS),
        Control("between", "infiniband", LINKS, "between nodes"),
        Control("node", 8, range(1, 65), "devices in a node"),
    ],
]


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    fields = {name: value for name, value in chosen.items() if name != "millions"}
    plan = Scenario(net="transformer", parameters=10**6 * chosen["millions"], **fields)
    refusals = {name: replace(plan, strategy=name).refusal() for name in OF_ANY_NET}
    known = {name: {"strategy": name} for name, why in refusals.items() if not why}
    others = "".join(f"\nno {name}: {why}" for name, why in refusals.items() if why)
    table = f"<pre>{escape(compare(plan, known) + others)}</pre>"
    words, drawn = f"There is no such plan: {plan.refusal()}.", ""
    if not plan.refusal():
        words, drawn = fits(plan), plans.step(plan.plan(), plan.usage())
    return answer(chosen, words=words, stage=drawn, scrolled=table)


def fits(plan: Scenario) -> str:
    """Whether the fullest device fits a card, and what takes most there."""
    memory, kept, peak = CARDS[str(plan.card)]["memory"], plan.kept(), plan.usage().peak
    device = kept.index(max(kept))
    kind = max(KEPT, key=lambda kind: peak[kind][device])
    fills = f"fills {ceil(100 * kept[device] / memory)}\u00a0% of {memory / 1e9:.0f}\u00a0GB"
    most = f"{kind.replace('momentum', 'optimizer')}, {peak[kind][device] / 1e9:.1f}\u00a0GB"
    return f"Device {device}, the fullest, {fills}. What takes most there: {most}."
