"""Variables left over from another job let a run wait: it says whose they are, and what to do."""

from collections.abc import Mapping

import pytest
from hosts_told import DMLC, JAX, PLAIN, SEEN, auto, tf
from together import Together, wait_until
from together_fixture import together as together

from common.backends.devices import Process
from common.hosts.launchers import Launched

LEFT_OVER = [
    ("pytorch", PLAIN, "RANK and WORLD_SIZE"),
    ("pytorch", SEEN["torchrun c10d"], "torchrun"),
    ("tensorflow", tf("chief", 0), "TF_CONFIG"),
    ("jax", JAX, "JAX"),
    ("mxnet", DMLC, "DMLC"),
    ("jax", SEEN["srun 0"], "Slurm"),
    ("mxnet", SEEN["mpirun"], "Open MPI"),
]


@pytest.mark.parametrize(("name", "told", "launcher"), LEFT_OVER)
def test_who_waits_says_by_whose_variables(
    together: Together, name: str, told: Mapping[str, str], launcher: str
) -> None:
    here = Launched(auto(name, told).launcher, Process(0, 3), ("localhost", together.port))
    run = together.start(0, patches={"common.training.run.launched": lambda *_: here})
    wait_until(lambda: "\n" in run.err())
    assert run.err().splitlines()[0] == (
        "1 of 3 processes have come; waiting for 1, 2, as the environment says "
        f"({launcher}); --launcher none ignores it"
    )


def test_who_waits_by_its_own_flags_says_nothing_of_an_environment(together: Together) -> None:
    run = together.start(0)
    wait_until(lambda: "\n" in run.err())
    assert run.err().splitlines()[0] == "1 of 3 processes have come; waiting for 1, 2"
