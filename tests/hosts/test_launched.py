"""Which process a launcher's variables name, and where several cannot be."""

import json
from typing import Any

import pytest

from common.backends.frameworks import launched
from common.base.errors import RequestError

TORCHRUN = {"WORLD_SIZE": "4", "RANK": "3"}
SLURM = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
BY_HAND = {"JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "2"}


def tf_config(job: str, index: int, **cluster: Any) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}


@pytest.mark.parametrize(
    ("name", "variables", "process"),
    [
        ("pytorch", {}, (0, 1)),
        ("pytorch", {"WORLD_SIZE": "1", "RANK": "0"}, (0, 1)),
        ("pytorch", TORCHRUN | SLURM, (3, 4)),
        ("jax", SLURM, (1, 2)),
        ("jax", BY_HAND | SLURM, (2, 3)),
        ("tensorflow", SLURM, (1, 2)),
        ("tensorflow", tf_config("worker", 1, worker=["a:1", "b:1"]), (1, 2)),
        ("tensorflow", tf_config("worker", 0, worker=["a:1"], chief=["b:1"]), (1, 2)),
        ("mxnet", {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, (0, 1)),
        ("pytorch", {"JAX_NUM_PROCESSES": "two"}, (0, 1)),
    ],
)
def test_the_variables_of_the_engine_say_which_process_this_is(
    name: str, variables: dict[str, str], process: tuple[int, int]
) -> None:
    assert launched(name, "concise", variables) == process


@pytest.mark.parametrize(
    ("name", "chapter", "variables", "told"),
    [
        ("pytorch", "scratch", TORCHRUN, "WORLD_SIZE asks for 4 .* only concise has several"),
        ("jax", "strategies", SLURM, "STEP_NUM_TASKS asks for 2 .* only concise has several"),
        ("pytorch", "concise", SLURM, "asks for 2 .* but PyTorch's are started by torchrun"),
        ("jax", "concise", TORCHRUN, "WORLD_SIZE asks for 4 processes, but JAX's are started by"),
        ("mxnet", "concise", SLURM, "MXNet has one host: its servers are not maintained"),
        ("mxnet", "concise", {"DMLC_NUM_WORKER": "2"}, "MXNet has one host"),
        ("jax", "concise", {"JAX_NUM_PROCESSES": "two"}, "set JAX_PROCESS_ID right"),
        ("jax", "concise", {"JAX_NUM_PROCESSES": "2"}, "no world size with this process's rank"),
        ("pytorch", "concise", TORCHRUN | {"RANK": "4"}, "or unset WORLD_SIZE"),
        ("tensorflow", "concise", {"TF_CONFIG": "{}"}, "TF_CONFIG='{}' is no world size"),
    ],
)
def test_several_processes_that_cannot_be_are_refused(
    name: str, chapter: str, variables: dict[str, str], told: str
) -> None:
    with pytest.raises(RequestError, match=told):
        launched(name, chapter, variables)
