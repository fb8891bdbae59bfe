"""What of the transformer and its mixtures of experts cannot be split."""

from dataclasses import replace
from typing import Any, Final

import pytest

from common.chapters.strategies import StrategiesOptions
from common.settings.arguments import parser

GPT: Final = StrategiesOptions(net="gpt", microbatches=2, depth=1, clip=0.5)
MIXTURE: Final[dict[str, Any]] = {
    **{"net": "moe", "strategy": "expert", "balance": 0.5},
    **{"microbatches": 1, "depth": 2},
}


@pytest.mark.parametrize(
    ("options", "devices", "why"),
    [
        (replace(GPT, strategy="tensor"), 4, "4 devices cannot share the 3 heads"),
        (replace(GPT, strategy="pipeline"), 4, "needs as many stages"),
        (replace(GPT, strategy="context"), 10, "10 devices cannot share the 9 tokens"),
        (replace(GPT, strategy="context", attention="ulysses"), 2, "2 devices do not divide 3"),
        (replace(GPT, strategy="context", net="lenet", clip=0.0), 2, "images are no sequences"),
        (replace(GPT, sequence_parallel=True), 2, "means nothing for --strategy data"),
        (replace(GPT, depth=0), 1, "--net gpt needs a block"),
        (replace(GPT, momentum=0.5), 1, "--momentum means nothing for --net gpt"),
        (replace(GPT, net="lenet"), 1, "--clip means nothing for --net lenet"),
        (replace(GPT, strategy="expert"), 2, "--strategy expert is for --net moe"),
        (replace(GPT, capacity=1.0), 2, "--capacity means nothing for --net gpt"),
        (replace(GPT, top_k=1), 2, "--top-k means nothing for --net gpt"),
        (replace(GPT, **MIXTURE), 5, "5 devices cannot share the 4 experts"),
        (replace(GPT, **MIXTURE | {"depth": 1}), 1, "--net moe has experts in every second block"),
        (replace(GPT, **MIXTURE | {"microbatches": 2}), 1, "--microbatches means nothing"),
        (replace(GPT, **MIXTURE | {"strategy": "tensor"}), 2, "--net moe is for --strategy data"),
        (replace(GPT, **MIXTURE | {"momentum": 0.5}), 2, "--momentum means nothing for --net moe"),
    ],
)
def test_what_cannot_be_split_is_refused(options: Any, devices: int, why: str) -> None:
    assert why in options.refusal(devices)


def test_a_capacity_and_a_norm_may_be_above_1() -> None:
    given = ["--net=moe", "--strategy=expert", "--capacity=1.25", "--clip=2"]
    read = vars(parser("mxnet", "strategies").parse_args(given))
    assert (read["capacity"], read["clip"]) == (1.25, 2)
