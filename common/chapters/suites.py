"""The suites of runs that are compared. Only the standard library, as for the plan of runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS, WRAPPERS
from common.chapters.concise import BATCH_NORMS
from common.chapters.scratch import ALLREDUCES
from common.chapters.spec import Settings
from common.chapters.strategies import CHAPTER
from common.parallel.strategies import OF_ANY_NET, OF_EXPERTS
from common.parallel.strategies.context import EXCHANGES


@dataclass(frozen=True)
class Suite:
    """Runs that must reach the same result: one for each framework and number of devices.

    Plain `nox` runs them on `devices`, `nox -s grid` also on `more_devices`. All devices are of
    one `kind`, "cpu" or "gpu". Runs on GPUs must give the numbers of the suite that theirs
    `repeats`, and runs on several devices those on one device, here or in the suite `alone_in`.
    With `checkpoint_every` among its settings, a run is resumed from its first checkpoint; if the
    suite `repeats` another one on CPUs, it must have the bits of that. `lacking` says why a
    framework has no such runs.
    """

    chapter: str
    name: str
    folder: str
    devices: tuple[int, ...]
    more_devices: tuple[int, ...]
    settings: Settings
    kind: str = "cpu"
    repeats: str = ""
    alone_in: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)

    def counts(self, *, more_devices: bool = False, gpus: int = 0) -> tuple[int, ...]:
        """The numbers of devices that a session runs, on GPUs at most so many."""
        counts = (*self.devices, *(self.more_devices if more_devices else ()))
        return tuple(k for k in counts if k <= gpus) if self.kind == "gpu" else counts

    def given(self, devices: int, results: Path) -> dict[str, Any]:
        where = {"devices": devices, "device_kind": self.kind, "threads": 1}
        return {**where, "out": results / self.folder, **self.settings}


def on_gpus(suites: Iterable[Suite]) -> list[Suite]:
    """The same runs on GPUs, which must give the same numbers."""
    return [
        replace(
            each,
            name=f"gpu-{each.name}",
            folder=f"gpu/{each.folder}",
            settings={**each.settings, "deterministic": True},
            kind="gpu",
            repeats=each.name,
            alone_in=each.alone_in and f"gpu-{each.alone_in}",
        )
        for each in suites
        if not each.repeats
    ]


_SCRATCH: Final[Settings] = {
    "batch_size": 100,
    "lr": 0.2,
    "steps": 10,
    "train_examples": 951,
    "test_examples": 1101,
}


def _scratch() -> Iterator[Suite]:
    """Float64 shows the algorithm, float32 what rounding adds; then come the other allreduces.

    The last minibatch of an epoch has 51 examples, uneven on two devices; 100 are uneven on three.
    The test set is predicted by a thousand images, and so has a short part at its end.
    """
    yield Suite("scratch", "quick", ".", (1, 2), (), {"preset": "quick"})
    for dtype in ("float64", "float32"):
        yield Suite("scratch", dtype, dtype, (1, 2), (3,), {**_SCRATCH, "dtype": dtype})
    for name in (name for name in ALLREDUCES if name != "star"):
        settings = {**_SCRATCH, "dtype": "float64", "allreduce": name}
        # The run on one device is that of the float64 suite. Halving has a further step if the
        # number of devices is no power of two.
        plain = (2,) if name == "native" else ()  # of which each framework has its own code
        devices = (3, 4) if name == "halving" else (3,)
        where = name, f"allreduce/{name}", plain, devices
        yield Suite("scratch", *where, settings, alone_in="float64")


# A batch of 7 is uneven on two and on four devices. All test images are those of the probe: a size
# more would be a program more in JAX.
_CONCISE: Final[Settings] = {
    "width": 4,
    "batch_size": 7,
    "lr": 0.03,
    "steps": 2,
    "train_examples": 300,
    "test_examples": 99,
}


def _concise() -> Iterator[Suite]:
    """Both modes of batch normalization, and every wrapper."""
    yield Suite("concise", "quick", ".", (2,), (1,), {"preset": "quick"})
    for dtype, batch_norm in product(("float64", "float32"), BATCH_NORMS):
        name, more = f"{dtype}-{batch_norm}", (4,) if dtype == "float64" else ()
        settings = {**_CONCISE, "dtype": dtype, "batch_norm": batch_norm}
        if name == "float64-per-device":  # it is resumed, with each device's own statistics
            settings["checkpoint_every"] = 1
        yield Suite("concise", name, name, (1, 2), more, settings)
    settings = {**_CONCISE, "dtype": "float64", "batch_norm": "sync"}
    for framework, known in WRAPPERS.items():
        lacking = {
            other: f"its wrappers are {', '.join(WRAPPERS[other])}"
            for other in WRAPPERS
            if other != framework
        }
        for name in (name for name in known[1:] if name != "dp"):  # which needs GPUs
            where = f"float64-{name}", f"wrapper/{name}", (2,), ()
            every = {**settings, "wrapper": name}
            yield Suite("concise", *where, every, alone_in="float64-sync", lacking=lacking)


# JAX compiles each layer for each size, so the test set is as large as a microbatch. 67
# divides by neither 2 nor 3: an error in the weights of shards or microbatches shows. An epoch
# ends after two steps: momentum that is lost there shows in the third. The fourth shows where a
# resumed run goes on within an epoch, and at which rate. A hidden layer more has a square weight,
# of which a transposed gradient has the right shape.
_SPLIT: Final[Settings] = {"lr": 0.05, "lr_decay": "linear", "steps": 4}
_SPLIT_SIZES: Final[dict[str, Settings]] = {
    "float64": {
        "batch_size": 67,
        "microbatches": 3,
        "train_examples": 134,
        "test_examples": 23,
        "depth": 1,
    },
    "float32": {"batch_size": 101, "train_examples": 202, "test_examples": 101},
}


def _split(
    name: str,
    devices: tuple[int, ...],
    more_devices: tuple[int, ...] = (),
    *,
    alone_in: str | None = None,
    repeats: str = "",
    **settings: str | float,
) -> Suite:
    """Runs from the same weights and on the same minibatches as all others of the dtype and net.

    Unless `alone_in` says otherwise, those on one device are of its first suite.
    """
    dtype = name.partition("-")[0]
    if "net" in settings:
        first, base = f"{dtype}-{settings['net']}-data", _GPT
    else:
        first, base = f"{dtype}-data", {**_SPLIT, **_SPLIT_SIZES[dtype]}
    if alone_in is None:
        alone_in = first if name != first else ""
    every = {**base, "dtype": dtype, **settings}
    where = name, f"strategies/{name}", devices, more_devices
    lacking = _lacking(every)
    return Suite("strategies", *where, every, repeats=repeats, alone_in=alone_in, lacking=lacking)


def _lacking(settings: Settings) -> dict[str, str]:
    """Why frameworks have no native version with these settings, by framework."""
    options = CHAPTER.chosen(settings)
    return {x: why for x in FRAMEWORKS if options.native and (why := options.no_native(x))}


def _of_users(*own: Settings) -> Iterator[Suite]:
    """Runs with the quick preset, in no session."""
    for settings in ({"preset": "quick", **each} for each in own):
        lacking = _lacking(settings)
        where = CHAPTER.way(settings), ".", (), ()
        yield Suite("strategies", *where, settings, lacking=lacking)


def _strategies() -> Iterator[Suite]:
    """Every strategy, schedule and mesh: all must give the same result."""
    for name in OF_ANY_NET:
        yield from _of_users({"strategy": name}, {"strategy": name, "native": True})
    yield _split("float64-data", (1, 2), (3,), strategy="data")
    # Three devices have uneven slices. Of ZeRO-1 and ZeRO-3, the transformer shows as much.
    counts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    counts = dict.fromkeys(("pipeline", "tensor"), ((3,), (2,)))
    counts |= {"zero1": ((), (2, 3)), "zero2": ((2,), (3,)), "zero3": ((), (2, 3))}
    for name, numbers in counts.items():
        yield _split(f"float64-{name}", *numbers, strategy=name)
    straight = "float64-pipeline"
    yield _split("float64-resumed", (3,), repeats=straight, strategy="pipeline", checkpoint_every=3)
    for order in ("gpipe", "naive", "zb1"):
        yield _split(f"float64-{order}", (), (3,), strategy="pipeline", schedule=order)
    for name, more in {"pipeline": (4, 6), "tensor": (4, 6), "zero3": (6,)}.items():
        yield _split(f"float64-{name}-mesh", (), more, strategy=name, replicas=2)
    native = partial(_split, native=True)
    yield native("float64-native-data", (2,), (3,), strategy="data")
    pipelined = partial(native, strategy="pipeline", schedule="gpipe")
    yield pipelined("float64-native-pipeline", (3,), (2,))
    yield native("float64-native-tensor", (3,), (2,), strategy="tensor")
    yield native("float64-native-zero1", (3,), (2,), strategy="zero1", checkpoint_every=3)
    yield native("float64-native-zero2", (), (2,), strategy="zero2")
    yield native("float64-native-zero3", (), (2, 3), strategy="zero3")
    yield native("float64-native-zero3-mesh", (4,), strategy="zero3", replicas=2)
    for name in ("tensor", "zero1", "zero2"):
        yield native(f"float64-native-{name}-mesh", (), (4,), strategy=name, replicas=2)
    # The first chapter's float32 runs show rounding; these stand for all strategies.
    yield _split("float32-data", (), (1, 2), strategy="data")
    yield _split("float32-zero3", (), (2,), strategy="zero3")
    yield native("float32-native-zero3", (), (2,), strategy="zero3")
    yield _split("float64-deep", (), (1, 8), alone_in="", strategy="pipeline", depth=4)


# 7 sequences divide by neither 2 nor 3, nor do 13 words, 9 tokens, 45 numbers a token; 3 heads are
# 2 and 1. Answers have one to three digits, so all shards and microbatches have other numbers of
# labels. An epoch ends after the fifth of nine steps.
_GPT: Final[Settings] = {
    "batch_size": 7,
    "microbatches": 1,
    "lr": 0.003,
    "lr_decay": "linear",
    "steps": 9,
    "train_examples": 35,
    "test_examples": 7,
    "depth": 1,
}


def _transformers() -> Iterator[Suite]:
    """The transformer, split every way."""
    gpt = partial(_split, net="gpt")
    own: list[dict[str, str | bool]] = [{"strategy": name} for name in OF_ANY_NET]
    for order in (False, True):
        own += [{"strategy": "context", "attention": x, "contiguous": order} for x in EXCHANGES]
    own += [{"strategy": "tensor", "sequence_parallel": True}]
    own += [{"net": "moe", "strategy": name} for name in OF_EXPERTS]
    yield from _of_users(*({"net": "gpt", **each} for each in own))
    yield gpt("float64-gpt-data", (1,), (2, 3), strategy="data")
    plain = {"pipeline": (3,), "tensor": (2,), "zero1": (), "zero2": (), "zero3": (2,)}
    for name, devices in plain.items():
        counts = (1, 2, 3)
        more = tuple(k for k in counts if k not in devices)
        # A microbatch of another size is compiled again. Meshes have some, and the grid.
        where = f"float64-gpt-{name}", devices, more
        yield gpt(*where, strategy=name, microbatches=7 if name == "pipeline" else 1)
    straight = "float64-gpt-tensor"
    resumed = partial(gpt, "float64-gpt-resumed", (), (3,), repeats=straight)
    yield resumed(strategy="tensor", checkpoint_every=6)
    deep = partial(gpt, "float64-gpt-deep", (), (1, 4), alone_in="", depth=2)
    yield deep(strategy="pipeline", microbatches=2)
    for name, more in {"pipeline": (4,), "tensor": (4, 6)}.items():
        yield gpt(f"float64-gpt-{name}-mesh", (), more, strategy=name, replicas=2, microbatches=2)
    where = "float64-gpt-zb1", (), (3,)
    yield gpt(*where, strategy="pipeline", schedule="zb1", microbatches=7)
    sequence = partial(gpt, strategy="tensor", sequence_parallel=True)
    yield sequence("float64-gpt-sequence", (), (2, 3))
    yield sequence("float64-gpt-sequence-mesh", (), (4,), replicas=2, microbatches=2)
    # The second on devices whose tokens are side by side, and the third if they divide the heads.
    yield gpt("float64-gpt-ring", (), (2, 3, 4), strategy="context")
    yield gpt(
        "float64-gpt-gather", (), (2, 4), strategy="context", attention="gather", contiguous=True
    )
    yield gpt("float64-gpt-ulysses", (), (3,), strategy="context", attention="ulysses")
    yield gpt("float64-gpt-ring-mesh", (), (4,), strategy="context", replicas=2, microbatches=2)
    yield gpt("float32-gpt-ring", (), (2,), strategy="context")
    yield gpt("float32-gpt-data", (), (1,), strategy="data")
    yield gpt("float32-gpt-tensor", (), (2, 3), strategy="tensor")


def _mixtures() -> Iterator[Suite]:
    """Mixtures of experts; 4 are 2, 1 and 1. Shards decide which tokens experts drop."""
    mixture = partial(_split, net="moe", depth=2)
    yield mixture("float64-moe-data", (), (1, 2), strategy="data")
    expert = partial(mixture, strategy="expert")
    yield expert("float64-moe-expert", (), (1, 2, 3))
    yield expert("float64-moe-capacity", (), (2, 3), alone_in="", capacity=1.0)
    yield expert("float64-moe-expert-mesh", (), (4,), replicas=2)


_ON_CPUS: Final = (*_scratch(), *_concise(), *_strategies(), *_transformers(), *_mixtures())

SUITES: Final = (*_ON_CPUS, *on_gpus(_ON_CPUS))
"""The suites that the sessions run; those on GPUs come after the ones that they repeat."""
