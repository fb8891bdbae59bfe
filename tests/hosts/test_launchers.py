"""Rank and world size, from the variables of real launchers and by hand."""

import json
from collections.abc import Mapping
from itertools import zip_longest
from typing import Final

import pytest

from common.backends.devices import Process
from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.hosts.launchers import Launched, launched

Told = Mapping[str, str]


def told(text: str) -> dict[str, str]:
    return dict(each.split("=", 1) for each in text.split())


# The variables of Slurm 22.05, Open MPI 4.1 and torchrun 2, on n1 and n2.
BATCH: Final = told("SLURM_JOB_ID=1 SLURM_NODELIST=n[1-2] SLURM_NTASKS=4 SLURM_PROCID=0")
SRUN: Final = told(
    "SLURM_JOB_ID=1 SLURM_NODELIST=n[1-2] SLURM_NTASKS=4 SLURM_PROCID=3 "
    "SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_NUM_TASKS=4"
)
SRUN_ONE: Final = SRUN | told(
    "SLURM_PROCID=0 SLURM_STEP_ID=2 SLURM_STEP_NODELIST=n1 SLURM_STEP_NUM_TASKS=1"
)
MPI: Final = told("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4")
TORCHRUN: Final = told(
    "MASTER_ADDR=n1 MASTER_PORT=29500 RANK=3 TORCHELASTIC_RUN_ID=none WORLD_SIZE=4"
)
PLAIN: Final = told("RANK=3 WORLD_SIZE=4 MASTER_ADDR=n1 MASTER_PORT=1234")
JAX: Final = told("JAX_COORDINATOR_ADDRESS=n1:1234 JAX_NUM_PROCESSES=4 JAX_PROCESS_ID=3")
DMLC: Final = told(
    "DMLC_ROLE=worker DMLC_NUM_WORKER=4 DMLC_WORKER_ID=3 DMLC_PS_ROOT_URI=10.0.0.1 "
    "DMLC_PS_ROOT_PORT=9000"
)


def tf(kind: str, index: object, *workers: str, **others: list[str]) -> dict[str, str]:
    cluster = {"worker": workers or ["b:1", "c:1"], **others}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


CHIEF: Final = tf("chief", 0, chief=["a:1"])
BY_SLURM: Final = Launched("Slurm", Process(3, 4), ("n1", 61101))
BY_MPI: Final = Launched("Open MPI", Process(3, 4), ("b", 7))
BY_TORCHRUN: Final = Launched("torchrun", Process(3, 4), ("n1", 63284))


def auto(name: str, found: Told, *by_hand: object, launcher: str = "auto") -> Launched:
    """`by_hand` are --coordinator, --hosts and --host-rank."""
    flags = zip_longest(("coordinator", "hosts", "host_rank"), by_hand)
    return launched(name, {"launcher": launcher, **dict(flags)}, found)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_slurm_open_mpi_and_flags_serve_every_framework(name: str) -> None:
    assert auto(name, SRUN) == BY_SLURM
    assert auto(name, MPI, "b:7") == auto(name, SRUN_ONE | MPI, "b:7") == BY_MPI
    for alone in (BATCH, SRUN_ONE, {}):
        assert auto(name, alone) == Launched()
    for found in (SRUN, MPI, TORCHRUN, {}, JAX, {"TF_CONFIG": "{"}):
        by_hand = Launched("by hand", Process(2, 3), ("n-1.x", 1234))
        assert auto(name, found, "n-1.x:1234", 3, 2) == by_hand
        assert auto(name, found, launcher="none") == Launched()


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("pytorch", TORCHRUN, BY_TORCHRUN),
        ("pytorch", SRUN | TORCHRUN, BY_TORCHRUN),
        ("pytorch", TORCHRUN | told("RANK=0 WORLD_SIZE=1"), Launched()),
        ("pytorch", PLAIN, Launched("RANK and WORLD_SIZE", Process(3, 4), ("n1", 1234))),
        ("tensorflow", CHIEF, Launched("TF_CONFIG", Process(0, 3), ("a", 1))),
        (
            "tensorflow",
            tf("worker", 1, chief=["a:1"]),
            Launched("TF_CONFIG", Process(2, 3), ("a", 1)),
        ),
        (
            "tensorflow",
            tf("worker", 2, "a:1", "b:1", "a:2", "b:2"),
            Launched("TF_CONFIG", Process(2, 4), ("a", 1)),
        ),
        ("jax", JAX, Launched("JAX", Process(3, 4), ("n1", 1234))),
        ("mxnet", DMLC, Launched("DMLC", Process(3, 4), ("10.0.0.1", 9000))),
        *(
            ("jax", SRUN | {"SLURM_STEP_NODELIST": nodes}, Launched("Slurm", Process(3, 4), where))
            for nodes, where in (
                ("n[08-10,3],m2", ("n08", 61101)),
                ("r[1-2]n[0-1]-ib,m", ("r1n0-ib", 61101)),
            )
        ),
    ],
)
def test_each_launcher_has_its_variables(name: str, found: Told, expected: Launched) -> None:
    assert auto(name, found) == expected


def test_an_address_alone_replaces_that_of_slurm() -> None:
    expected = Launched("Slurm", Process(3, 4), ("b", 7))
    assert auto("pytorch", SRUN | told("MASTER_ADDR=c MASTER_PORT=8"), "b:7") == expected


@pytest.mark.parametrize(
    ("name", "found", "why"),
    [
        ("jax", SRUN | {"SLURM_PROCID": "4"}, "Slurm says rank '4' of '4', which is no process"),
        ("jax", SRUN | {"SLURM_STEP_NODELIST": "n[1-"}, "SLURM_STEP_NODELIST 'n.1-' does not name"),
        ("jax", MPI, "are set, but not --coordinator HOST:PORT: set"),
        ("pytorch", PLAIN | {"MASTER_ADDR": "http://n1" * 99}, "'http.* is not HOST:PORT"),
        ("pytorch", PLAIN | told("MASTER_ADDR="), "not MASTER_ADDR"),
        ("tensorflow", {"TF_CONFIG": '{"cluster": 3, "task": 4}'}, "is not a cluster"),
        ("tensorflow", tf("worker", 2), "and a task, with type and index, among them"),
        ("jax", SRUN | JAX | {"JAX_PROCESS_ID": "1"}, "process 1 of 4, but Slurm says 3 of 4"),
        ("pytorch", CHIEF, "TF_CONFIG is set, which pytorch does not read"),
    ],
)
def test_variables_left_over_or_contradictory_are_refused_with_a_way_out(
    name: str, found: Told, why: str
) -> None:
    with pytest.raises(RequestError, match=why) as error:
        auto(name, found)
    assert "--launcher none" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
