"""The rivals that are not everywhere: the book's own package, `d2l`, and Lightning Fabric.

The environments of `nox -s d2l` have them.
"""

import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scratch_steps import as_arrays

from bench.plan import WORKLOADS, Workload
from common.base.arrays import Array
from common.base.machine import cores
from common.models.nets import LENET, Shapes, resnet18_shapes, trainable

ROOT = Path(__file__).parents[2]
FABRIC = """
import json
import numpy as np
import torch
from bench.fabric_fit import Fit
from bench.plan import Workload

fit = Fit(Workload("scratch", batch_size=4, lr=0.01, examples=8))
labels = np.arange(8, dtype=np.uint8)
data = fit.prepare(np.repeat(labels * 30, 28 * 28).reshape(-1, 28, 28), labels)
seen = torch.stack([y for _, y in data])
before = [param.detach().clone() for param in fit.net.parameters()]
fit.train(data)
after = [param.detach() for param in fit.net.parameters()]
changes = torch.cat([(b - a).flatten() for a, b in zip(before, after)])
found = [fit.fabric.all_gather(each).tolist() for each in (seen, changes.abs().sum())]
if fit.fabric.global_rank == 0:
    print(json.dumps([*found, torch.get_num_threads()]))
"""

# The loader's workers are as many as the package asks for, and `fit` does not shuffle a loader.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader", "ignore:.*will be ignored since")


def fit_of(framework: str, workload: Workload) -> Any:
    return importlib.import_module(f"bench.d2l_{framework}").Fit(workload)


def weights(framework: str, fit: Any) -> list[Array]:
    """What is trained."""
    if framework == "pytorch":
        return [param.detach().numpy().copy() for param in fit.net.parameters()]
    if framework == "tensorflow":
        return [variable.numpy() for variable in fit.net.trainable_variables]
    if framework == "jax":
        jax: Any = importlib.import_module("jax")
        return [np.array(values) for values in jax.tree.leaves(fit.state[0]["params"])]
    params = fit.net.collect_params().values()
    return [param.data().asnumpy() for param in params if param.grad_req != "null"]


def test_the_loader_gives_the_images_and_training_changes_the_weights(
    framework: str, all_devices: Sequence[Any]
) -> None:
    """LeNet, on ten images, each of one grey of its own, and all labels."""
    fit = fit_of(framework, Workload("scratch", batch_size=4, lr=0.01, examples=10))
    labels = np.arange(10, dtype=np.uint8)
    batches = fit.prepare(np.repeat(labels * 25, 28 * 28).reshape(-1, 28, 28), labels)
    arrays = [as_arrays(batch) for batch in batches]
    assert sorted(len(y) for _, y in arrays) == [2, 4, 4]
    pixels = np.concatenate([X.reshape(len(X), -1) * 255 for X, _ in arrays])
    seen = np.concatenate([y for _, y in arrays])
    assert sorted(seen) == list(range(10))
    assert np.allclose(pixels, 25 * seen[:, np.newaxis], atol=1e-3)
    fit.train(batches)  # now MXNet's has weights
    before = weights(framework, fit)
    fit.train(batches)
    after = weights(framework, fit)
    assert any(not np.array_equal(a, b) for a, b in zip(after, before, strict=True))
    assert all(np.isfinite(values).all() for values in after)


@pytest.mark.parametrize(
    ("chapter", "shapes"), [("scratch", LENET), ("concise", resnet18_shapes(64))]
)
def test_the_net_is_as_large(
    framework: str, all_devices: Sequence[Any], chapter: str, shapes: Shapes
) -> None:
    workload = WORKLOADS[chapter]
    fit = fit_of(framework, workload)
    if framework == "mxnet":
        mx: Any = importlib.import_module("mxnet")
        fit.net(mx.np.zeros((1, 1, 28, 28)))  # now it knows its shapes
    expected = sum(math.prod(shape) for name, shape in shapes.items() if trainable(name))
    assert sum(values.size for values in weights(framework, fit)) == expected


@pytest.mark.only("pytorch")
def test_fabric_trains_equal_replicas_on_halves(framework: str, tmp_path: Path) -> None:
    """By a script: Fabric starts it again for the second process."""
    script = tmp_path / "script.py"
    script.write_text(FABRIC)
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120)
    seen, changes, threads = json.loads(done.stdout.splitlines()[-1])
    assert np.shape(seen) == (2, 2, 2)  # processes, minibatches, images
    assert sorted(np.ravel(seen)) == list(range(8))
    assert changes[0] == changes[1] > 0
    assert threads == max(1, cores() // 2)
