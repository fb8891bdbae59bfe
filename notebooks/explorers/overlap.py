"""When a device computes and sends in a step, by strategies without stages."""

from typing import Final

from common.scaling.steps import LINKS
from notebooks.drawing import steps
from notebooks.explorers.forms import Choice, Control, Form, answer, values

TITLE: Final = "When a device computes and sends"

STRATEGIES: Final = ("data", "zero1", "zero2", "zero3", "tensor")

FORM: Final[Form] = [
    [
        Control("tokens", 2048, range(128, 4096), "tokens of a device"),
        Control("link", "nvlink", LINKS),
        Control("layers", 4, range(1, 9)),
    ]
]

KEY: Final = """Layers of 219 million weights, on 8 A100s. A number is that of a layer. Sum: a
reduce-scatter of gradients, by data parallelism an all-reduce, by tensor parallelism one of
activations."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    words = (
        f"A step of {chosen['layers']} layers on {chosen['tokens']} tokens of each device, with "
        f"messages by {chosen['link']}. Where a device sends and does not compute, it waits."
    )
    return answer(chosen, words=words, stage=steps.overlap(*STRATEGIES, **chosen), key=KEY)
