"""Which process this is, by what real launchers have told real processes, and by hand."""

import pytest
from hosts_told import DMLC, JAX, PLAIN, SEEN, Told, auto, tf

from common.backends.devices import Process
from common.backends.frameworks import FRAMEWORKS
from common.hosts.launchers import ByHand, Launched, NothingToDoError, launched

FOR_ALL = [
    ("srun 0", Launched("Slurm", Process(0, 4, 0, 2), ("n1", 61101))),
    ("srun 3", Launched("Slurm", Process(3, 4, 1, 2), ("n1", 61101))),
    ("srun on one host", Launched("Slurm", Process(1, 2, 1, 2), ("n1", 61104))),
    ("srun cyclic", Launched("Slurm", Process(2, 4, 1, 2), ("n1", 61102))),
    ("srun of one task", Launched()),
    ("batch script", Launched()),
    ("salloc", Launched()),
    ("mpirun in Slurm 0", Launched("Open MPI", Process(0, 4, 0, 2), ("10.99.0.11", 62961))),
    ("mpirun in Slurm 3", Launched("Open MPI", Process(3, 4, 1, 2), ("10.99.0.11", 62961))),
    ("mpirun", Launched("Open MPI", Process(1, 2, 1, 2), ("10.99.0.10", 64075))),
]


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize(("seen", "expected"), FOR_ALL)
def test_slurm_and_open_mpi_serve_every_framework(name: str, seen: str, expected: Launched) -> None:
    assert auto(name, SEEN[seen]) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("torchrun --standalone", Launched("torchrun", Process(1, 2, 1, 2), ("localhost", 64601))),
        ("torchrun of one", Launched()),
        ("torchrun static", Launched("torchrun", Process(3, 4, 1, 2), ("n1", 63284))),
        ("torchrun c10d", Launched("torchrun", Process(2, 4, 0, 2), ("n1", 61275))),
        (
            "torchrun c10d, rendezvous on the other host",
            Launched("torchrun", Process(0, 4, 0, 2), ("n1", 62487)),
        ),
        ("torchrun in srun 0", Launched("torchrun", Process(0, 4, 0, 2), ("n1", 64013))),
        ("torchrun in srun 3", Launched("torchrun", Process(3, 4, 1, 2), ("n1", 64013))),
    ],
)
def test_torchrun_serves_pytorch(seen: str, expected: Launched) -> None:
    found = auto("pytorch", SEEN[seen])
    assert found == expected
    assert not found.coordinator or str(found.coordinator[1]) != SEEN[seen]["MASTER_PORT"]


OWN: list[tuple[str, Told, Launched]] = [
    ("pytorch", PLAIN, Launched("RANK and WORLD_SIZE", Process(3, 4), ("n1", 1234))),
    (
        "pytorch",
        {**PLAIN, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "fd00::1"},
        Launched("RANK and WORLD_SIZE", Process(3, 4, 1, 2), ("fd00::1", 1234)),
    ),
    ("pytorch", {"RANK": "0", "WORLD_SIZE": "1"}, Launched()),
    ("pytorch", {"MASTER_ADDR": "n1", "MASTER_PORT": "1234"}, Launched()),
    ("tensorflow", tf("chief", 0), Launched("TF_CONFIG", Process(0, 3), ("a", 1))),
    ("tensorflow", tf("worker", 0), Launched("TF_CONFIG", Process(1, 3), ("a", 1))),
    ("tensorflow", tf("worker", "1"), Launched("TF_CONFIG", Process(2, 3), ("a", 1))),
    (
        "tensorflow",
        tf("worker", 2, {"worker": ["[::1]:1", "b:1", "[::1]:2", "b:2"]}),
        Launched("TF_CONFIG", Process(2, 4, 1, 2), ("::1", 1)),
    ),
    ("tensorflow", tf("worker", 0, {"worker": ["a:1"]}), Launched()),
    ("jax", JAX, Launched("JAX", Process(3, 4), ("n1", 1234))),
    ("jax", {"JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"}, Launched()),
    ("mxnet", DMLC, Launched("DMLC", Process(3, 4), ("10.0.0.1", 9000))),
]


@pytest.mark.parametrize(("name", "told", "expected"), OWN)
def test_each_framework_has_variables_of_its_own(name: str, told: Told, expected: Launched) -> None:
    assert auto(name, told) == expected


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_by_hand_serves_every_framework_and_wins(name: str) -> None:
    flags = ByHand("[fd00::1]:1234", 3, 2)
    expected = Launched("by hand", Process(2, 3), ("fd00::1", 1234))
    for told in (*SEEN.values(), {}, JAX, {"TF_CONFIG": "{"}):
        assert launched(name, "auto", flags, told) == expected
        assert launched(name, "none", flags, told) == expected
    assert launched(name, "auto", ByHand("a:1", 1, 0), {}) == Launched()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_launcher_none_ignores_the_environment(name: str) -> None:
    for told in (*SEEN.values(), {"RANK": "x"}, JAX, DMLC, {"TF_CONFIG": "{"}):
        assert launched(name, "none", ByHand(), told) == Launched()


@pytest.mark.parametrize("seen", ["srun 0", "srun arbitrary", "mpirun in Slurm 3", "mpirun"])
def test_an_address_alone_replaces_that_of_slurm_or_open_mpi(seen: str) -> None:
    expected = launched("pytorch", "auto", ByHand("b:7"), SEEN[seen])
    assert expected.coordinator == ("b", 7)
    assert expected.process.count > 1
    own = SEEN[seen] | {"MASTER_ADDR": "b", "MASTER_PORT": "7"}
    assert auto("pytorch", own) == expected
    assert auto("jax", SEEN[seen] | {"JAX_COORDINATOR_ADDRESS": "b:7"}) == expected
    assert auto("jax", SEEN[seen] | {"JAX_COORDINATOR_ADDRESS": "x:1"}, "b:7") == expected


def test_of_two_launchers_the_inner_one_decides() -> None:
    assert auto("jax", SEEN["srun 3"] | JAX).launcher == "JAX"
    assert auto("mxnet", SEEN["mpirun in Slurm 3"] | DMLC).launcher == "DMLC"
    assert auto("pytorch", SEEN["srun 3"] | PLAIN).launcher == "RANK and WORLD_SIZE"
    assert auto("jax", SEEN["srun of one task"] | JAX).launcher == "JAX"
    assert auto("jax", SEEN["srun 3"] | PLAIN).launcher == "Slurm"


def test_two_steps_of_a_job_meet_at_two_ports() -> None:
    ports = {
        auto("jax", SEEN["srun 0"] | {"SLURM_JOB_ID": job, "SLURM_STEP_ID": str(step)}).coordinator
        for job in ("7", "8", "45")
        for step in range(100)
    }
    assert len(ports) == 300


def test_a_server_of_mxnet_has_nothing_to_do() -> None:
    for role in ("server", "scheduler"):
        with pytest.raises(NothingToDoError, match=f"DMLC_ROLE is {role}: ") as error:
            auto("mxnet", DMLC | {"DMLC_ROLE": role})
        assert error.value.status == 0
