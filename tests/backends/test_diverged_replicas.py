"""Replicas of ResNet-18 that diverge are not saved: the run ends and says where they differ."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from concise_steps import options, request, start

from common.backends.devices import Process
from common.backends.loading import backend
from common.base.errors import RunError

NAME = "stage2.block1.conv3.bias"


def part_pytorch(replicas: Any, rank: int) -> None:
    if rank == 1:
        replicas.net.module.get_parameter(NAME).data += 1


def part_tensorflow(replicas: Any, rank: int) -> None:
    (_, second) = replicas.params[NAME].values
    second.assign_add([1.0] * second.shape[0])


def part_jax(replicas: Any, rank: int) -> None:
    jax = importlib.import_module("jax")

    def diverged(path: Any, values: Any) -> Any:
        if "conv3" not in jax.tree_util.keystr(path):
            return values
        copies = [shard.data for shard in values.addressable_shards]
        copies[1] = jax.device_put(copies[1] + 1, copies[1].device)
        return jax.make_array_from_single_device_arrays(values.shape, values.sharding, copies)

    replicas.params = jax.tree_util.tree_map_with_path(diverged, replicas.params)


def part_mxnet(replicas: Any, rank: int) -> None:
    replicas.net.collect_params()[NAME].list_data()[1][:] += 1


PART = {
    "pytorch": part_pytorch,
    "tensorflow": part_tensorflow,
    "jax": part_jax,
    "mxnet": part_mxnet,
}


@dataclass(frozen=True)
class LayerDivergence:
    """A worker: changes one weight on the second device, and then saves."""

    framework: str
    devices: Sequence[Any]
    wrapper: str | None

    def __call__(self, process: Process) -> None:
        chapter = backend(self.framework, "concise")
        chosen = options(self.framework, wrapper=self.wrapper)
        trainer = chapter.trainer(start("float64"), process.share_of(self.devices), chosen)
        trainer.export()
        PART[self.framework](trainer.replicas, process.rank)
        trainer.export()


@pytest.mark.parametrize(
    ("wrapper", "k"),
    [
        (None, 2),
        # Three do not divide its channels: each device has all of it.
        pytest.param("zero3", 3, marks=pytest.mark.only("jax")),
    ],
)
def test_replicas_that_parted_end_the_run(
    framework: str, concise: Any, all_devices: Sequence[Any], wrapper: str | None, k: int
) -> None:
    worker = LayerDivergence(framework, all_devices[:k], wrapper)
    with pytest.raises(RunError, match=r"^stage2\.block1\.conv3\.\w+ on device 1 differs"):
        concise.launch(worker, request(k), options(framework, wrapper=wrapper))
