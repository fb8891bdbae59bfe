"""What PyTorch's own ways to split move, and what they refuse."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from momentum_steps import numbers
from native_steps import CASES, by_star, told_of_moved
from safetensors.numpy import load_file
from scratch_steps import batches

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend
from common.base.arrays import part
from common.base.errors import RequestError
from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.models.weights_file import save_weights

pytestmark = pytest.mark.only("pytorch")

TWO: Final = DeviceRequest(2, "cpu", 1)


@dataclass(frozen=True)
class Moved:
    """A worker: what each way moves, in a file of the first process."""

    path: Path

    def __call__(self, process: Process) -> None:
        """Saves it."""
        chapter = backend("pytorch", "strategies")
        devices, found = chapter.devices(process, TWO).local, dict[str, Any]()
        for name in STRATEGIES:
            case = CASES[name]
            options = case if name == "pipeline" else replace(case, microbatches=1)
            trainer = chapter.replicate(numbers(options), devices, options)
            moved = trainer.moved(*batches(1, 12, "float64")[0])
            found |= {f"{name}/{each.kind}": np.array(float(each.size // 8)) for each in moved}
            found[f"star/{name}"] = np.array(float(by_star(moved, 2) // 8))
        if process.rank == 0:
            save_weights(self.path, found)


def test_each_way_moves_what_the_page_says(strategies: Any, tmp_path: Path) -> None:
    path = tmp_path / "moved.safetensors"
    strategies.launch(Moved(path), TWO, CASES["zero3"])
    found = load_file(path)
    for name, (sizes, star) in told_of_moved("pytorch").items():
        assert part(found, f"{name}/") == sizes, name
        assert found[f"star/{name}"] == star, name


def test_1f1b_wants_as_many_microbatches_as_stages(strategies: Any) -> None:
    options = StrategiesOptions("pipeline", microbatches=1, native=True)
    with pytest.raises(RequestError, match="as there are stages, 2, or more"):
        strategies.launch(print, TWO, options)
