"""Replicas of ResNet-18 that diverge are not saved."""

import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from concise_steps import options, start
from workers import Worker

from common.base.arrays import Weights
from common.base.errors import RunError
from common.chapters.concise import ConciseOptions

NAME = "stage2.block1.conv3.bias"


def change_second(framework: str, replicas: Any) -> None:
    """Changes one weight on the second device."""
    if framework == "pytorch":
        if importlib.import_module("torch").distributed.get_rank() == 1:
            replicas.net.module.get_parameter(NAME).data += 1
    elif framework == "tensorflow":
        (_, second) = replicas.params[NAME].values
        second.assign_add([1.0] * second.shape[0])
    elif framework == "mxnet":
        replicas.net.collect_params()[NAME].list_data()[1][:] += 1
    else:
        jax = importlib.import_module("jax")

        def changed(path: Any, values: Any) -> Any:
            if "conv3" not in jax.tree_util.keystr(path):
                return values
            copies = [shard.data for shard in values.addressable_shards]
            copies[1] = jax.device_put(copies[1] + 1, copies[1].device)
            return jax.make_array_from_single_device_arrays(values.shape, values.sharding, copies)

        replicas.params = jax.tree_util.tree_map_with_path(changed, replicas.params)


def diverge(
    framework: str, chapter: Any, devices: Sequence[Any], chosen: ConciseOptions
) -> Weights:
    trainer = chapter.trainer(start("float64"), devices, chosen)
    trainer.export()
    change_second(framework, trainer.replicas)
    weights: Weights = trainer.export()
    return weights


@pytest.mark.parametrize(
    ("wrapper", "k"),
    [
        (None, 2),
        # Three do not divide its channels: each device has all of it.
        pytest.param("zero3", 3, marks=pytest.mark.only("jax")),
    ],
)
def test_replicas_that_parted_end_the_run(
    framework: str, tmp_path: Path, wrapper: str | None, k: int
) -> None:
    cases = {"diverge": (partial(diverge, framework), options(framework, wrapper=wrapper))}
    with pytest.raises(RunError, match=r"^stage2\.block1\.conv3\.\w+ on device 1 differs"):
        Worker(framework, "concise", k, cases, tmp_path).run()
