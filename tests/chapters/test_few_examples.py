"""Runs of sizes that no suite has, compared as suites are: each step with NumPy's.

In the last step some devices have no example, nor has a whole row of a mesh.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import concise_steps
import pytest
import scratch_steps
from agreement import verdict
from several import Several

from common.backends.frameworks import WRAPPERS
from common.backends.interface import ALONE
from common.base.arrays import part
from common.compare.checks import same_bits
from common.models.weights_file import save_weights
from common.pairs.runs import read_run
from common.parallel.strategies import OF_ANY_NET
from common.records.record import name_of
from common.settings.arguments import parser
from common.training.reporter import Reporter
from common.training.run import Run, settle

EVERY: Final = "--device-kind=cpu --threads=1 --quiet --steps=3 --test-examples=2"
FLOAT32: Final = f"{EVERY} --dataset=synthetic --batch-size=5 --lr=0.2"
SGD: Final = f"{EVERY} --dataset=synthetic --dtype=float64 --lr=1e-6 --lr-decay=linear"
RESNET18: Final = f"{SGD} --batch-size=10 --train-examples=21 --width=4"
LENET: Final = f"{SGD} --batch-size=11 --train-examples=23 --microbatches=4"
ADAM: Final = f"{EVERY} --dtype=float64 --lr=0.003 --lr-decay=linear --clip=0.5"
GPT: Final = f"{ADAM} --batch-size=7 --train-examples=15 --depth=1 --net=gpt"
MOE: Final = f"{ADAM} --batch-size=7 --train-examples=15 --balance=0.5 --net=moe"

NATIVE: Final = {
    "pytorch": ("pipeline --schedule=gpipe", *OF_ANY_NET),
    "tensorflow": ("data", "tensor", "zero3"),
    "jax": ("pipeline --schedule=gpipe", "data", "tensor", "zero3"),
}
"""Where they compile for long, ZeRO-1 and ZeRO-2 are only in the grid. MXNet has none."""

Launch = tuple[str, int, str, tuple[str, ...]]
"""A chapter, its devices, the flags of all runs, and the values of the last flag for each."""

Made = Callable[[Launch], dict[str, list[Path]]]
"""The records of a launch, by the last flag's value."""


def launches(framework: str) -> Iterator[Launch]:
    # Some frameworks have other code for float32, which fails on empty shards.
    yield "scratch", 5, f"{FLOAT32} --train-examples", ("6", "1")
    yield "scratch", 5, f"{SGD} --batch-size=5 --train-examples", ("11",)
    for wrapper in WRAPPERS.get(framework, ()):
        if wrapper != "dp":  # which needs GPUs
            mode = "sync" if wrapper in ("fsdp", "zero3") else "per-device"
            yield "concise", 3, f"{RESNET18} --wrapper={wrapper} --batch-norm", (mode,)
    yield "strategies", 3, f"{GPT} --strategy", ("data", "context")
    yield "strategies", 3, f"{MOE} --strategy", ("data", "expert")
    split = "data", "tensor", "pipeline --schedule=zb1", "zero3"
    yield "strategies", 3, f"{LENET} --strategy", split
    if framework == "pytorch":  # where it is fast; the text of strategies is that of all
        others = "pipeline", "pipeline --schedule=naive --stages=2,1,1", "zero2"
        yield "strategies", 3, f"{LENET} --strategy", others
        yield "strategies", 4, f"{LENET} --replicas=2 --strategy", ("tensor", "pipeline", "zero3")
        of_tokens = "zero2", "context --attention=ulysses --contiguous"
        yield "strategies", 3, f"{GPT} --strategy", of_tokens
        yield "strategies", 4, f"{GPT} --strategy", ("context --attention=gather",)
        of_mesh = "tensor", "tensor --sequence-parallel", "pipeline", "context"
        yield "strategies", 4, f"{GPT} --replicas=2 --microbatches=2 --strategy", of_mesh
        yield "strategies", 4, f"{MOE} --replicas=2 --capacity=0.75 --strategy", ("expert",)
    if native := NATIVE.get(framework):
        yield "strategies", 1, f"{LENET} --native --strategy", (native[0], native[-1])
        yield "strategies", 3, f"{LENET} --native --strategy", native
        meshed = (native[0], "zero3") if framework == "pytorch" else ("zero3",)
        yield "strategies", 4, f"{LENET} --native --replicas=2 --strategy", meshed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    planned = launches(metafunc.config.getoption("--framework") or "")
    cases = [(launch, own) for launch in planned for own in launch[-1]]
    named = [f"{x[0]} {x[1]} {x[2].partition('-size=')[2]} {own}" for x, own in cases]
    metafunc.parametrize(("launch", "own"), cases, ids=named)


@pytest.fixture(scope="session")
def made(framework: str, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Makes the runs of a launch: of each case a straight one, and that one resumed.

    From a checkpoint of another strategy or of other devices, too: in JAX, which compiles, the last
    one alone.
    """
    starts = tmp_path_factory.mktemp("starts")
    for net, steps, layer in (("", scratch_steps, "fc2"), ("concise", concise_steps, "fc")):
        # A gradient with a norm of hundreds shows that nothing clips it.
        weights, name = steps.start("float64"), f"{layer}.weight"
        save_weights(starts / f"start{net}", {**weights, name: 300 * weights[name]})
    before: dict[str, Path] = {}

    def run(chapter: str, flags: list[str], *more: str) -> Run:
        settings = vars(parser(framework, chapter).parse_args([*flags, *more]))
        return settle(settings, ALONE, flags, Reporter(quiet=True))

    @cache
    def make(launch: Launch) -> dict[str, list[Path]]:
        chapter, devices, common, some = launch
        made = {}
        for own in some:
            kept = tmp_path_factory.mktemp("runs")
            flags = [f"--devices={devices}", *f"{common}={own}".split()]
            if common.startswith(SGD):
                net = chapter if chapter == "concise" else ""
                flags.append(f"--init-weights={starts / 'start'}{net}")
            every = f"--checkpoint-dir={kept}", "--checkpoint-every=2"
            straight = run(chapter, flags, f"--out={kept / 'straight'}", *every)
            step = kept / f"{Path(name_of(straight.config)).stem}-step2.json"
            places = {"resumed": step}
            if chapter == "strategies":
                numerics = str(straight.config.numerics())
                if numerics in before and (framework != "jax" or own == some[-1]):
                    places["other"] = before[numerics]
                before[numerics] = step
            made[own] = [straight] + [
                run(chapter, flags, f"--out={kept / name}", f"--resume-from={path}")
                for name, path in places.items()
            ]
        Several([run for runs in made.values() for run in runs]).launch()
        return {
            own: [run.files.out / name_of(run.config) for run in runs] for own, runs in made.items()
        }

    return make


def test_each_step_is_that_of_numpy_also_of_a_run_that_is_resumed(
    made: Made, launch: Launch, own: str
) -> None:
    straight, resumed, *others = map(read_run, made(launch)[own])
    # There is no run on one device: NumPy's steps show as much.
    failures = verdict(straight, resumed, *others).failures
    assert [check.why for check in failures if check.check != "devices"] == []
    assert same_bits(resumed, straight).passed
    if launch[2].startswith(SGD):
        gradients = part(straight.arrays, "gradients/").values()
        assert sum((values**2).sum() for values in gradients) > 100**2
    options: Any = straight.record.config.options
    if own.startswith("pipeline") and options.replicas == 1 and not options.native:
        passes = [(x.stage, x.kind, x.microbatch) for x in options.plan(launch[1]).passes(4)]
        assert straight.record.split
        events = straight.record.split.events
        assert [(x.device, x.what, x.microbatch) for x in events] == passes
        assert all(0 <= x.begin <= x.end for x in events)
