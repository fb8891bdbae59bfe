"""What the page on speed says that a device keeps under each wrapper is what it keeps."""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import pytest
from held import WIDTH, Held

from common.backends.frameworks import WRAPPERS
from common.models.nets import resnet18_shapes, trainable

PAGE = Path(__file__).parents[2] / "docs/performance.md"
WHOLE = 4 * sum(prod(shape) for name, shape in resnet18_shapes(WIDTH).items() if trainable(name))
SPLIT = {"pytorch": "fsdp", "jax": "zero3"}


@pytest.mark.only(*SPLIT)
@pytest.mark.parametrize("devices", [2, 4])
def test_a_device_keeps_what_the_page_says(
    framework: str, concise: Any, all_devices: Sequence[Any], tmp_path: Path, devices: int
) -> None:
    chosen = all_devices[:devices], "per-device", "float32", tmp_path, SPLIT[framework]
    found = Held(framework, *chosen).run(concise)
    (weights,), (gradients,) = found["weights"], found["gradients"]
    for wrapper, kept in (
        (WRAPPERS[framework][0], (WHOLE, WHOLE)),
        (SPLIT[framework], (weights, gradients)),
    ):
        row = f"| {framework} | `{wrapper}` | {devices} | {kept[0]:,} | {kept[1]:,} |"
        assert row in PAGE.read_text(encoding="utf-8")
