"""What launchers tell the processes that they start."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from common.hosts.launchers import ByHand, Launched, launched

SEEN: Final[dict[str, dict[str, str]]] = json.loads(
    Path(__file__).with_name("hosts_told.json").read_text()
)
"""What processes found that Slurm 22.05, Open MPI 4.1 and torchrun 2 have started, on n1 and n2."""

TF: Final = {"cluster": {"chief": ["a:1"], "worker": ["b:1", "[::2]:1"]}}
JAX: Final = {
    "JAX_COORDINATOR_ADDRESS": "n1:1234",
    "JAX_NUM_PROCESSES": "4",
    "JAX_PROCESS_ID": "3",
}
DMLC: Final = {
    "DMLC_ROLE": "worker",
    "DMLC_NUM_WORKER": "4",
    "DMLC_WORKER_ID": "3",
    "DMLC_PS_ROOT_URI": "10.0.0.1",
    "DMLC_PS_ROOT_PORT": "9000",
}
PLAIN: Final = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "n1", "MASTER_PORT": "1234"}

Told = Mapping[str, str]


def tf(kind: str, index: object, cluster: object = TF["cluster"]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def auto(name: str, told: Told, coordinator: str | None = None) -> Launched:
    return launched(name, "auto", ByHand(coordinator), told)


def without(told: Told, name: str) -> dict[str, str]:
    return {key: value for key, value in told.items() if key != name}
