"""In float32 right runs part where rounding decides a ReLU unit, and none of them is accused."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import DATA, ROUNDED, failed, judge, make, rewrite
from numpy_chapter import Flips, Momentum, NumpyChapter, NumpyConcise, OnGpus, flipped

from common.base.arrays import Array, Weights
from common.chapters.suites import Suite, on_gpus
from common.compare import numpy_nets, numpy_pass
from common.compare.limits import PER_TERM
from common.compare.recorded_steps import RecordedStep
from common.data.dataset import pixels
from common.models.nets import resnet18_shapes
from common.models.weights_file import initial_weights
from common.pairs.runs import compare_runs, read_run
from common.records.record import read_record, read_tensors, write_record
from common.report.text import rows

OTHERS = ("pytorch", "tensorflow", "mxnet")


@pytest.fixture
def doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so few units, hardly any is in doubt by itself."""
    monkeypatch.setattr(numpy_nets, "DOUBT", 300)


@pytest.mark.usefixtures("doubtful")
def test_the_run_without_a_flip_that_others_share_is_not_accused(tmp_path: Path) -> None:
    for framework in OTHERS:
        make(tmp_path, framework, Flips(), 1, **ROUNDED)
    make(tmp_path, "jax", NumpyConcise(), 1, **ROUNDED)
    verdict = judge(tmp_path)
    assert verdict.passed
    (comparison,) = verdict.comparisons
    assert not {"weights", "outcome"} & {check.check for check in comparison.checks}
    rewrite(tmp_path / "jax-concise-1dev.json", {"weights/fc.bias": np.full(10, np.inf, "f")})
    (comparison,) = judge(tmp_path).comparisons
    (row,) = (row for row in rows(comparison) if row[0] == "weights at the end")
    assert row[1:5] == [("", True), ("", True), ("✗", False), ("", True)]


class FlipsOnGpus(OnGpus, Flips):
    """GPUs that decide a ReLU unit otherwise."""


@pytest.mark.usefixtures("doubtful")
def test_a_gpu_may_decide_on_a_unit_otherwise_than_a_cpu(
    tmp_path: Path,
) -> None:
    suite = Suite("concise", "float32-own", "own", (1,), (), ROUNDED)
    chosen: Any = {"frameworks": ("jax", "pytorch"), "known": [suite, *on_gpus([suite])]}
    (tmp_path / "gpu").mkdir()
    for framework, (place, chapter) in product(
        ("jax", "pytorch"), {"own": NumpyConcise(), "gpu/own": FlipsOnGpus()}.items()
    ):
        kind = "gpu" if "gpu" in place else "cpu"
        make(tmp_path / place, framework, chapter, 1, **ROUNDED, device_kind=kind)
    verdict = judge(tmp_path, **chosen)
    assert verdict.passed
    assert "gpus" in {check.check for check in verdict.checks}
    path = tmp_path / "own/jax-concise-1dev.json"
    tensors = read_tensors(path, read_record(path))
    del tensors["trace/weights/1/fc.bias"]
    write_record(path, read_record(path), tensors)
    verdict = judge(tmp_path, **chosen)
    assert failed(verdict) == {("shapes", "jax", 1)}


@dataclass
class Times(NumpyConcise):
    """Gradients are off by a factor."""

    factor: float

    def step(self, X: Array, y: Array) -> numpy_nets.Step:
        found = super().step(X, y)
        scaled = {name: self.factor * grad for name, grad in found.gradients.items()}
        return replace(found, gradients=scaled)


class TwiceAsFar(NumpyConcise):
    """Applies its update twice."""

    def sgd(self, device: int, weights: Any, gradients: Any, lr: float) -> None:
        super().sgd(device, weights, gradients, 2 * lr)


@pytest.mark.parametrize(
    ("chapter", "red"),
    [(Times(1.016), []), (Times(2), ["gradient", "second"]), (TwiceAsFar(), ["second"])],
)
def test_a_large_nets_first_gradient_may_have_flips_and_its_update_shows_in_the_second_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chapter: NumpyChapter, red: list[str]
) -> None:
    monkeypatch.setattr("common.records.trace.MOST_BYTES", 0)
    paths = [make(tmp_path, name, NumpyConcise(), 1, **ROUNDED) for name in OTHERS]
    wrong = make(tmp_path, "jax", chapter, 1, **ROUNDED)
    assert failed(judge(tmp_path)) == {(name, "jax", 1) for name in red}
    first, second, other = map(read_run, (*paths[:2], wrong))
    assert compare_runs(first, second).passed
    checks = [check for check in compare_runs(first, other).checks if not check.passed]
    assert [check.check for check in checks] == red
    assert not checks or checks[-1].where == "step 2"


def test_a_first_step_from_other_weights_is_seen(tmp_path: Path) -> None:
    for framework in ("jax", "mxnet"):
        path = make(tmp_path, framework, NumpyChapter(), 1, dtype="float32")
    begun = "trace/weights/0/fc2.bias"
    rewrite(path, {begun: read_tensors(path, read_record(path))[begun] + np.float32(0.1)})
    (check,) = judge(tmp_path, frameworks=("jax", "mxnet")).failures
    assert check.why == "the first step does not begin with the initial weights"


def test_what_a_sum_may_be_off_grows_with_its_terms(tmp_path: Path) -> None:
    weights = initial_weights(resnet18_shapes(2), 0, "float64")
    X, y = pixels(DATA.train_images[:6], "float64"), DATA.train_labels[:6]
    terms = numpy_nets.step("concise", X, y, weights, [(0, 6)]).terms
    pixels_of = {"conv1.weight": 28**2, "stage4.block2.bn2.bias": 4**2}
    assert {name: terms[name] for name in pixels_of} == {
        name: 6 * count for name, count in pixels_of.items()
    }
    chapter = NumpyConcise()
    step = RecordedStep(read_run(make(tmp_path, "jax", chapter, 1, **ROUNDED)), 1)
    summing = step.by_name(step.summing)
    assert (summing["conv1.weight"] == PER_TERM * 5 * 28**2).all()
    assert not summing["fc.weight"].any()  # has a term for each image only
    run = read_run(make(tmp_path, "jax", NumpyChapter(), 1, dtype="float32"))
    scratch = RecordedStep(run, 1)
    assert not scratch.summing.any()  # of LeNet, no sum was seen to lose so much


def test_what_a_mean_may_be_off_grows_with_its_pixels(tmp_path: Path) -> None:
    """Of pixels that are added one after another, in float32."""
    settings = {**ROUNDED, "batch_norm": "per-device"}
    step = RecordedStep(read_run(make(tmp_path, "jax", NumpyConcise(), 2, **settings)), 1)
    for name, shard, pixels_of_shard in (
        ("bn1.running_mean", 0, 3 * 28**2),
        ("stage4.block2.bn2.running_mean", 1, 2 * 4**2),
    ):
        due, n = step.right.seen[name][shard], pixels_of_shard
        off = numpy_pass.MOMENTUM * np.abs(due) * n / 2 * np.finfo("float32").eps
        assert np.allclose(step.near(name, shard, due + off, due), due, rtol=1e-12)
        assert not np.allclose(step.near(name, shard, due * 1.01, due), due, rtol=1e-3)


class FlipsWithMomentum(Momentum):
    """Decides a ReLU unit otherwise in every step."""

    def step(self, X: Array, y: Array) -> numpy_nets.Step:
        return flipped(self, super().step(X, y), X, y, "conv1.bias")


def far_from_zero(*args: Any) -> Weights:
    """Initial weights and biases of which small steps are rounded away."""
    drawn = initial_weights(*args)
    return {name: np.copysign(np.abs(x) + np.float32(0.01), x) for name, x in drawn.items()}


@pytest.mark.usefixtures("doubtful")
@pytest.mark.parametrize(("start", "lr"), [(initial_weights, 1e-3), (far_from_zero, 1e-7)])
def test_a_flip_is_taken_off_the_velocity_and_nothing_else_is(
    tmp_path: Path, start: Any, lr: float
) -> None:
    run = {"chapter": "strategies", "dtype": "float32", "lr": lr, "steps": 3}
    for framework in ("jax", "mxnet"):
        chapter = FlipsWithMomentum() if framework == "jax" else Momentum()
        path = make(tmp_path, framework, chapter, 1, start=start, **run)
    counted = {("plan", framework, 1) for framework in ("jax", "mxnet")}  # of NumPy, nothing is
    assert failed(judge(tmp_path, frameworks=("jax", "mxnet"))) == counted
    record = read_record(path)
    name = "trace/momentum/2/conv1.bias"
    rewrite(path, {name: read_tensors(path, record)[name] * np.float32(1.01)})
    assert ("steps", "mxnet", 1) in failed(judge(tmp_path, frameworks=("jax", "mxnet")))


class Winograd(NumpyChapter):
    """The gradient of a kernel loses digits, as by an algorithm that one GPU had chosen."""

    def step(self, X: Array, y: Array) -> numpy_nets.Step:
        found = super().step(X, y)
        kernel = found.gradients["conv2.weight"]
        kernel[0, 0, 0, 0] += 5.4e-5 * np.abs(kernel).max()
        return found


class TensorFloat32(NumpyChapter):
    """Multiplies with ten bits of the mantissa."""

    def predict(self, X: Array) -> Array:
        bits = {k: w.view(np.uint32) & 0xFFFFE000 for k, w in self.replicas[0].items()}
        coarse = {name: values.view(np.float32) for name, values in bits.items()}
        return numpy_nets.logits(self.name, X, coarse).astype(X.dtype)


@pytest.mark.parametrize(
    ("bug", "check"),
    [(Winograd, "gradient"), (TensorFloat32, "forward")],
)
def test_what_float32_alone_gets_wrong_is_red(tmp_path: Path, bug: Any, check: str) -> None:
    for framework in OTHERS:
        make(tmp_path, framework, NumpyChapter(), 1, dtype="float32")
    make(tmp_path, "jax", bug(), 1, dtype="float32")
    found = failed(judge(tmp_path))
    assert (check, "jax", 1) in found
    assert {framework for _, framework, _ in found} == {"jax"}
