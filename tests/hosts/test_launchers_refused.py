"""What launchers tell a process, and does not go together, is one line that says what to do."""

import pytest
from hosts_told import DMLC, JAX, PLAIN, SEEN, Told, auto, tf, without

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.hosts.launchers import ByHand, launched

SLURM = SEEN["srun 3"]
MPI = SEEN["mpirun"]
TORCHRUN = SEEN["torchrun static"]
REFUSED: list[tuple[str, Told, str]] = [
    ("pytorch", SEEN["srun 3+1"], "4 tasks on 2 nodes as 3,1, .* --ntasks-per-node"),
    ("jax", SEEN["srun 2+1"], "3 tasks on 2 nodes as 2,1, .* --ntasks-per-node"),
    ("jax", SEEN["srun arbitrary"], "--distribution=arbitrary: .* --coordinator"),
    ("jax", without(SLURM, "SLURM_PROCID"), "SLURM_PROCID ''"),
    ("jax", SLURM | {"SLURM_PROCID": "4"}, "SLURM_PROCID '4' of SLURM_STEP_NUM_TASKS '4'"),
    ("jax", without(SLURM, "SLURM_LOCALID"), "not SLURM_LOCALID"),
    ("jax", SLURM | {"SLURM_LOCALID": "2"}, "SLURM_LOCALID '2' is none of the 2"),
    ("jax", SLURM | {"SLURM_STEP_TASKS_PER_NODE": "3(x2)"}, "does not add up to .*TASKS 4"),
    ("jax", SLURM | {"SLURM_STEP_TASKS_PER_NODE": "2(x)"}, "'2.x.' is not like"),
    ("jax", SLURM | {"SLURM_STEP_TASKS_PER_NODE": "0(x2)"}, "is not like"),
    ("jax", SLURM | {"SLURM_STEP_TASKS_PER_NODE": "1(x999999)"}, "is not like"),
    ("jax", SLURM | {"SLURM_STEP_NODELIST": "n[1-"}, "SLURM_STEP_NODELIST 'n.1-' is no list"),
    ("jax", SLURM | {"SLURM_STEP_NODELIST": "n[0-99999999]"}, "is no list"),
    ("jax", SLURM | {"SLURM_JOB_ID": "x"}, "SLURM_JOB_ID 'x' is no number"),
    ("jax", SLURM | {"SLURM_STEP_ID": "x"}, "SLURM_STEP_ID 'x' is no number"),
    ("jax", without(SLURM, "SLURM_JOB_ID"), "not SLURM_JOB_ID"),
    ("jax", without(MPI, "OMPI_COMM_WORLD_RANK"), "OMPI_COMM_WORLD_RANK ''"),
    ("jax", without(MPI, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE ''"),
    ("jax", MPI | {"OMPI_COMM_WORLD_LOCAL_RANK": "2"}, "LOCAL_RANK '2' of .*LOCAL_SIZE '2'"),
    ("jax", MPI | {"OMPI_COMM_WORLD_SIZE": "3"}, "2 of 3 processes here, .* ppr:N:node"),
    ("jax", without(MPI, "OMPI_MCA_orte_hnp_uri"), "where mpirun runs, .* --coordinator"),
    (
        "jax",
        SEEN["mpirun in Slurm 0"] | {"OMPI_MCA_orte_local_daemon_uri": "1.1;tcp://10.0.0.9:5"},
        "mpirun runs on another host than the first process",
    ),
    ("pytorch", TORCHRUN | {"RANK": "4"}, "TORCHELASTIC_RUN_ID is set, but RANK '4' of WORLD_SIZE"),
    ("pytorch", TORCHRUN | {"RANK": "-1"}, "RANK '-1'"),
    ("pytorch", TORCHRUN | {"RANK": "٣"}, "RANK '٣'"),
    ("pytorch", without(TORCHRUN, "LOCAL_RANK"), "LOCAL_RANK '' of LOCAL_WORLD_SIZE '2'"),
    ("pytorch", TORCHRUN | {"WORLD_SIZE": "5"}, "LOCAL_WORLD_SIZE 2 of WORLD_SIZE 5: "),
    (
        "pytorch",
        TORCHRUN | {"WORLD_SIZE": "5", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"},
        "--nproc-per-node",
    ),
    ("pytorch", without(TORCHRUN, "MASTER_PORT"), "not MASTER_PORT"),
    ("pytorch", TORCHRUN | {"MASTER_PORT": "65536"}, "MASTER_PORT '65536' is no port"),
    ("pytorch", TORCHRUN | {"MASTER_ADDR": "http://n1"}, "MASTER_ADDR 'http://n1' is no host"),
    ("pytorch", TORCHRUN | {"MASTER_ADDR": "x\n" * 999}, "MASTER_ADDR 'x.nx"),
    ("pytorch", without(PLAIN, "WORLD_SIZE"), "RANK '3' of WORLD_SIZE ''"),
    ("pytorch", without(PLAIN, "RANK"), "WORLD_SIZE is set, but RANK ''"),
    ("pytorch", without(PLAIN, "MASTER_ADDR"), "not MASTER_ADDR"),
    ("pytorch", SLURM | {"MASTER_ADDR": "n1", "MASTER_PORT": ""}, "MASTER_ADDR and MASTER_PORT go"),
    (
        "pytorch",
        SLURM | {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"},
        "Slurm has started processes on several hosts, and localhost",
    ),
    ("jax", SLURM | {"JAX_COORDINATOR_ADDRESS": "[::1]:80"}, "and ::1, where the first one"),
    ("tensorflow", {"TF_CONFIG": "{"}, "TF_CONFIG '.' is not a cluster"),
    ("tensorflow", {"TF_CONFIG": "[" * 100_000}, "is not a cluster"),
    ("tensorflow", {"TF_CONFIG": "{}"}, "is not a cluster"),
    ("tensorflow", {"TF_CONFIG": '{"cluster": 3, "task": 4}'}, "is not a cluster"),
    ("tensorflow", tf("worker", 0, {"worker": "a:1"}), "is not a cluster"),
    ("tensorflow", tf("worker", 0, {"worker": [1]}), "is not a cluster"),
    ("tensorflow", tf("worker", -1), "is not a cluster"),
    ("tensorflow", tf("worker", True), "is not a cluster"),
    ("tensorflow", tf("worker", 2), "and this is worker 2: "),
    ("tensorflow", tf("chief", 0, {"worker": ["a:1"]}), "0 chiefs"),
    ("tensorflow", tf("chief", 0, {"chief": ["a:1", "b:1"]}), "2 chiefs"),
    ("tensorflow", tf("worker", 0, {"worker": ["a:1", "a:1"]}), "each address once"),
    ("tensorflow", tf("worker", 0, {"worker": ["a", "b:1"]}), "TF_CONFIG 'a' is not HOST:PORT"),
    ("tensorflow", tf("worker", 0, {"worker": ["a:1", "a:2", "b:1"]}), "as many on each"),
    ("tensorflow", tf("worker", 0, {"worker": ["a:1"], "ps": ["b:1"]}), "TF_CONFIG has 'ps', "),
    ("tensorflow", tf("evaluator", 0), "TF_CONFIG has 'evaluator', "),
    ("jax", without(JAX, "JAX_NUM_PROCESSES"), "JAX_NUM_PROCESSES ''"),
    ("jax", without(JAX, "JAX_PROCESS_ID"), "JAX_PROCESS_ID ''"),
    ("jax", without(JAX, "JAX_COORDINATOR_ADDRESS"), "not JAX_COORDINATOR_ADDRESS"),
    ("jax", {"JAX_COORDINATOR_ADDRESS": "a:1"}, "JAX_PROCESS_ID '' of JAX_NUM_PROCESSES ''"),
    ("jax", JAX | {"JAX_COORDINATOR_ADDRESS": "::1:80"}, "an IPv6 address in brackets"),
    ("mxnet", DMLC | {"DMLC_ROLE": "boss"}, "DMLC_ROLE 'boss' is not"),
    *[("mxnet", without(DMLC, name), name) for name in DMLC],
    ("jax", SLURM | JAX | {"JAX_NUM_PROCESSES": "8"}, "process 3 of 8, but Slurm says 3 of 4"),
    ("jax", SLURM | JAX | {"JAX_PROCESS_ID": "1"}, "process 1 of 4, but Slurm says 3 of 4"),
    ("mxnet", MPI | DMLC, "process 3 of 4, but Open MPI says 1 of 2"),
    ("tensorflow", SLURM | tf("worker", 1), "process 2 of 3, but Slurm says 3 of 4"),
    *[(name, tf("chief", 0), "TF_CONFIG") for name in FRAMEWORKS if name != "tensorflow"],
    *[(name, TORCHRUN, "TORCHELASTIC_RUN_ID") for name in FRAMEWORKS if name != "pytorch"],
    *[(name, PLAIN, "RANK is set, which") for name in FRAMEWORKS if name != "pytorch"],
    *[(name, JAX, "JAX_NUM_PROCESSES is set, which") for name in FRAMEWORKS if name != "jax"],
    *[(name, DMLC, "DMLC_ROLE is set, which") for name in FRAMEWORKS if name != "mxnet"],
]


@pytest.mark.parametrize(("name", "told", "why"), REFUSED)
def test_what_does_not_go_together_is_one_line(name: str, told: Told, why: str) -> None:
    with pytest.raises(RequestError, match=why) as error:
        auto(name, told)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("flags", "seen", "why"),
    [
        (ByHand(hosts=2), "srun 0", "go together"),
        (ByHand(host_rank=0), "srun 0", "go together"),
        (ByHand("a:1", 2), "", "go together"),
        (ByHand("a:1"), "", "needs --hosts and --host-rank"),
        (ByHand("a:1"), "batch script", "needs --hosts"),
        (ByHand("a:1"), "torchrun static", "--coordinator contradicts torchrun"),
        (ByHand("a", 2, 0), "", "--coordinator 'a' is not HOST:PORT"),
        (ByHand("a:0", 2, 0), "", "--coordinator '0' is no port"),
        (ByHand("a b:1", 2, 0), "", "--coordinator 'a b' is no host"),
        (ByHand("", 2, 0), "", "--coordinator '' is not HOST:PORT"),
        (ByHand("[a]:1", 2, 0), "", "is no host"),
        (ByHand("a:1", 2, 2), "", "--host-rank 2 is none of --hosts 2"),
        (ByHand("a:1", 2, -1), "", "--host-rank -1 is none"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(flags: ByHand, seen: str, why: str) -> None:
    with pytest.raises(RequestError, match=why) as error:
        launched("pytorch", "auto", flags, SEEN.get(seen, {}))
    assert "\n" not in str(error.value)
