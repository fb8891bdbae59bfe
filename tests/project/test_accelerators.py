"""Which environment a framework's sessions take, and why: one line, whatever the machine has."""

import re
from pathlib import Path

import pytest

from common.backends.devices import DeviceRequest
from common.backends.driver import Card, Driver, find_driver
from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from sessions import accelerators
from sessions.accelerators import BUILDS, NoAcceleratorError, choose

NONE = "there is no NVIDIA driver here"
AMPERE, HOPPER = Card("NVIDIA A100", (8, 0)), Card("NVIDIA H100", (9, 0))
BLACKWELL, OLD = Card("NVIDIA RTX 5090", (12, 0)), Card("Tesla K80", (3, 7))
NEWEST = "580.95.05"
MACHINES = {"x86_64": "x86-64", "aarch64": "ARM"}
ROOT = Path(__file__).parents[2]


def on(*cards: Card, version: str = NEWEST) -> Driver:
    return Driver(version, cards)


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def lines(found: Driver | str, asked: str = "") -> dict[str, str]:
    return {each: choose(each, asked, found).line for each in FRAMEWORKS}


def test_two_cards_that_all_serve() -> None:
    why = "2 x NVIDIA A100, driver 580.95.05"
    found = on(AMPERE, AMPERE)
    assert lines(found) == {each: f"{each} runs in .nox/{each}-cuda: {why}" for each in FRAMEWORKS}
    assert lines(found, "cuda") == lines(found)
    assert all(choose(each, "", found).cards == found.cards for each in FRAMEWORKS)


def test_without_a_driver_everything_is_as_it_was() -> None:
    assert lines(NONE) == {each: f"{each} runs in .nox/{each}: {NONE}" for each in FRAMEWORKS}


def test_cpu_can_be_asked_for() -> None:
    expected = {each: f"{each} runs in .nox/{each}: ACCELERATOR=cpu" for each in FRAMEWORKS}
    assert lines(on(AMPERE), "cpu") == expected


def test_cuda_can_be_asked_for_where_there_is_no_driver() -> None:
    for each in FRAMEWORKS:
        found = choose(each, "cuda", NONE)
        assert found.line == f"{each} runs in .nox/{each}-cuda: ACCELERATOR=cuda, but {NONE}"
        assert found.cards == ()


@pytest.mark.parametrize("asked", ["gpu", "CUDA", "1"])
def test_what_else_is_asked_for_is_refused(asked: str) -> None:
    with pytest.raises(NoAcceleratorError, match=f"ACCELERATOR={asked}: set it to cpu or cuda"):
        choose("jax", asked, NONE)


@pytest.mark.parametrize(
    ("version", "cuda"),
    [
        ("580.65.06", ["pytorch", "tensorflow", "jax", "mxnet"]),
        ("580.65", ["tensorflow", "jax", "mxnet"]),
        ("535.261.03", ["tensorflow", "jax", "mxnet"]),
        ("525.60.13", ["tensorflow", "jax", "mxnet"]),
        ("525.60.12", ["mxnet"]),
        ("470.256.02", ["mxnet"]),
        ("450.80.02", ["mxnet"]),
        ("418.87.00", []),
        ("1000.1", ["pytorch", "tensorflow", "jax", "mxnet"]),
    ],
)
def test_an_old_driver_serves_who_can_use_it(version: str, cuda: list[str]) -> None:
    found = on(AMPERE, version=version)
    assert [each for each in FRAMEWORKS if choose(each, "", found).cuda] == cuda
    for each in set(FRAMEWORKS) - set(cuda):
        line = (
            f"the driver {version} is too old for {BUILDS[each].cuda}, "
            f"which takes {BUILDS[each].driver} or later"
        )
        assert choose(each, "", found).why == line
        with pytest.raises(NoAcceleratorError, match=f"{each}: {re.escape(line)}; ACCELERATOR=cpu"):
            choose(each, "cuda", found)


@pytest.mark.parametrize(
    ("card", "cuda"),
    [
        (HOPPER, ["pytorch", "tensorflow", "jax"]),
        (BLACKWELL, ["pytorch", "jax"]),
        (Card("Tesla V100", (7, 0)), ["tensorflow", "jax", "mxnet"]),
        (Card("NVIDIA RTX 4090", (8, 9)), ["pytorch", "tensorflow", "jax", "mxnet"]),
        (OLD, []),
        (Card("NVIDIA X"), ["pytorch", "tensorflow", "jax", "mxnet"]),
    ],
)
def test_a_card_serves_who_has_code_for_it(card: Card, cuda: list[str]) -> None:
    assert [each for each in FRAMEWORKS if choose(each, "", on(card)).cuda] == cuda


def test_why_a_card_does_not_serve_is_said() -> None:
    assert choose("mxnet", "", on(HOPPER, HOPPER)).why == (
        "its build of CUDA 11.2 is for compute capability 5.0 to 8.9, "
        "and not for 2 x NVIDIA H100 (9.0)"
    )
    assert "compute capability from 5.2 on, and not for 1 x Tesla K80 (3.7)" in (
        choose("jax", "", on(OLD)).why
    )


def test_of_several_cards_those_that_serve_are_used() -> None:
    found = choose("mxnet", "", on(HOPPER, AMPERE))
    assert found.cards == (AMPERE,)
    assert "not for 1 x NVIDIA H100: CUDA_VISIBLE_DEVICES hides it" in found.why


@pytest.mark.parametrize(
    ("system", "machine", "cuda"),
    [
        ("linux", "aarch64", ["pytorch", "jax"]),
        ("darwin", "arm64", []),
        ("win32", "AMD64", []),
    ],
)
def test_other_systems_have_the_builds_that_they_have(
    system: str, machine: str, cuda: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert [each for each in FRAMEWORKS if choose(each, "", on(AMPERE)).cuda] == cuda
    for each in set(FRAMEWORKS) - set(cuda):
        with pytest.raises(NoAcceleratorError, match="has no build for GPUs for"):
            choose(each, "cuda", NONE)


def test_every_framework_has_a_build_and_its_constraints() -> None:
    assert tuple(BUILDS) == FRAMEWORKS
    folder = Path(accelerators.__file__).parents[1] / "constraints"
    for each in set(FRAMEWORKS) - {"pytorch"}:
        assert (folder / f"{each}-cuda.txt").is_file()


def test_the_page_has_the_builds_and_the_lines() -> None:
    page = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    for name, build in BUILDS.items():
        cards = build.cards().removeprefix("compute capability ")
        machines = ", ".join(MACHINES[each] for each in build.machines)
        assert f"| {name} | {build.cuda} | {build.driver} | {cards} | {machines} |" in page
    hopper = Card("NVIDIA H100 80GB HBM3", (9, 0))
    assert choose("mxnet", "", on(hopper)).line in page
    assert choose("jax", "", on(*[Card("NVIDIA A100-SXM4-40GB", (8, 0))] * 2)).line in page
    assert choose("pytorch", "", on(AMPERE, version="535.183.01")).why in page
    assert NONE in page
    for gpus in (0, 2):
        with pytest.raises(RequestError) as refused:
            DeviceRequest(4, "gpu", threads=1).settled(gpus, "JAX")
        assert f"`{str(refused.value).partition(':')[0].partition(' tells')[0]}`" in page


def test_the_page_says_what_a_driver_without_its_tool_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loaded = tmp_path / "version"
    loaded.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Release Build")
    monkeypatch.setattr("common.backends.driver.LOADED", loaded)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    told, _, helps = str(find_driver(None)).partition(": ")
    page = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    assert f"| `{told}` |" in page
    assert "--gpus all" in helps
