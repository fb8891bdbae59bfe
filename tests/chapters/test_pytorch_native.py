"""What PyTorch's own ways to split move, and what they refuse."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from momentum_steps import numbers
from native_steps import CASES
from safetensors.numpy import load_file
from scratch_steps import batches

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend
from common.base.errors import RequestError
from common.chapters.strategies import StrategiesOptions
from common.models.weights_file import save_weights

pytestmark = pytest.mark.only("pytorch")

TWO: Final = DeviceRequest(2, "cpu", 1)
NUMBERS = 129_068

# The loss is a number more, but where each process has all of it. Gloo scatters by an all-reduce.
MOVED = {
    "data": {"all-reduce": NUMBERS + 1},
    "pipeline": {"all-reduce": 1, "send": 2 * 12 * 3380},
    "tensor": {"all-reduce": 12 * (4050 + 800 + 10)},
    "zero1": {"all-reduce": NUMBERS + 1, "broadcast": NUMBERS},
    "zero2": {"all-reduce": NUMBERS + 1, "all-gather": NUMBERS},
    "zero3": {"all-reduce": NUMBERS + 1, "all-gather": 2 * NUMBERS},
}


@dataclass(frozen=True)
class Moved:
    """A worker: what each way moves, in a file of the first process."""

    path: Path

    def __call__(self, process: Process) -> None:
        """Saves it."""
        chapter = backend("pytorch", "strategies")
        devices, found = chapter.devices(process, TWO).local, dict[str, Any]()
        for name, case in CASES.items():
            options = case if name == "pipeline" else replace(case, microbatches=1)
            trainer = chapter.replicate(numbers(options), devices, options)
            for each in trainer.moved(*batches(1, 12, "float64")[0]):
                found[f"{name} {each.kind}"] = np.array(float(each.size))
        if process.rank == 0:
            save_weights(self.path, found)


def test_each_way_moves_what_it_says(strategies: Any, tmp_path: Path) -> None:
    path = tmp_path / "moved.safetensors"
    strategies.launch(Moved(path), TWO, CASES["zero3"])
    found = {key: int(size.item()) for key, size in load_file(path).items()}
    assert found == {
        f"{name} {k}": 8 * n for name, moved in MOVED.items() for k, n in moved.items()
    }


@pytest.mark.parametrize(
    ("schedule", "microbatches", "said"),
    [("naive", 4, "are --schedule gpipe and 1f1b"), ("1f1b", 1, "as there are stages, 2, or more")],
)
def test_an_order_that_a_pipeline_does_not_have_is_refused(
    strategies: Any, schedule: str, microbatches: int, said: str
) -> None:
    options = StrategiesOptions("pipeline", 1, microbatches, schedule, native=True)
    with pytest.raises(RequestError, match=said):
        strategies.launch(print, TWO, options)
