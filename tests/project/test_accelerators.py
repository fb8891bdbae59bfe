"""Which environment a framework's sessions take, and why: one line, whatever nvidia-smi answers."""

import re
from pathlib import Path

import pytest

from common.backends import driver
from common.backends.devices import DeviceRequest
from common.backends.driver import Card, Driver, find_driver
from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from sessions.accelerators import BUILDS, NoAcceleratorError, choose

AMPERE, HOPPER = Card("NVIDIA A100", (8, 0)), Card("NVIDIA H100", (9, 0))
NEWEST = "580.95.05"
MACHINES = {"x86_64": "x86-64", "aarch64": "ARM"}
PAGE = (Path(__file__).parents[2] / "docs/gpu.md").read_text(encoding="utf-8")


def on(*cards: Card, version: str = NEWEST) -> Driver:
    return Driver(version, cards)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Linux machine without a driver, whose nvidia-smi would be here."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(driver, "FOLDERS", ())
    monkeypatch.setattr(driver, "LOADED", tmp_path / "version")
    return tmp_path


def says(folder: Path, text: str, script: str = "cat $0.said") -> None:
    """Makes an nvidia-smi that says this."""
    made = folder / "nvidia-smi"
    made.with_suffix(".said").write_text(text)
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)


def test_cuda_can_be_asked_for_where_there_is_no_driver() -> None:
    why = find_driver(None)
    assert why == "there is no NVIDIA driver here"
    for each in FRAMEWORKS:
        assert choose(each, "", why).line == f"{each} runs in .nox/{each}: {why}"
        found = choose(each, "cuda", why)
        assert found.line == f"{each} runs in .nox/{each}-cuda: ACCELERATOR=cuda, but {why}"
        assert found.cards == ()


def test_cpu_can_be_asked_for_and_nothing_else_but_cuda() -> None:
    for each in FRAMEWORKS:
        line = f"{each} runs in .nox/{each}: ACCELERATOR=cpu"
        assert choose(each, "cpu", on(AMPERE)).line == line
    with pytest.raises(NoAcceleratorError, match="ACCELERATOR=gpu: set it to cpu or cuda"):
        choose("jax", "gpu", "")


@pytest.mark.parametrize(
    ("version", "cuda"),
    [
        ("580.65.06", FRAMEWORKS),
        ("580.65", ("tensorflow", "jax", "mxnet")),
        ("525.60.12", ("mxnet",)),
        ("418.87.00", ()),
        ("1000.1", FRAMEWORKS),
    ],
)
def test_an_old_driver_serves_what_can_use_it(version: str, cuda: tuple[str, ...]) -> None:
    found = on(AMPERE, version=version)
    assert tuple(each for each in FRAMEWORKS if choose(each, "", found).cuda) == cuda
    for each in set(FRAMEWORKS) - set(cuda):
        build = BUILDS[each]
        why = f"{version} is too old for {build.cuda}, which takes {build.driver} or later"
        assert choose(each, "", found).why == f"the driver {why}"
        with pytest.raises(NoAcceleratorError, match=f"{re.escape(why)}; ACCELERATOR=cpu does"):
            choose(each, "cuda", found)


@pytest.mark.parametrize(
    ("card", "cuda"),
    [
        (HOPPER, ("pytorch", "tensorflow", "jax")),
        (Card("NVIDIA RTX 5090", (12, 0)), ("pytorch", "jax")),
        (Card("Tesla V100", (7, 0)), ("tensorflow", "jax", "mxnet")),
        (Card("Tesla K80", (3, 7)), ()),
        (Card("NVIDIA X"), FRAMEWORKS),
    ],
)
def test_a_card_serves_what_has_code_for_it(card: Card, cuda: tuple[str, ...]) -> None:
    assert tuple(each for each in FRAMEWORKS if choose(each, "", on(card)).cuda) == cuda


def test_of_several_cards_those_that_serve_are_used() -> None:
    found = choose("mxnet", "", on(HOPPER, AMPERE))
    assert found.cards == (AMPERE,)
    assert "not for 1 x NVIDIA H100: CUDA_VISIBLE_DEVICES hides it" in found.why


def test_other_processors_have_the_builds_that_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert [each for each in FRAMEWORKS if choose(each, "", on(AMPERE)).cuda] == ["pytorch", "jax"]
    with pytest.raises(NoAcceleratorError, match="has no build for GPUs for linux on aarch64"):
        choose("mxnet", "cuda", "")


def test_the_page_has_the_builds_and_the_lines(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuple(BUILDS) == FRAMEWORKS
    for name, build in BUILDS.items():
        cards = build.cards().removeprefix("compute capability ")
        machines = ", ".join(MACHINES[each] for each in build.machines)
        assert f"| {name} | {build.cuda} | {build.driver} | {cards} | {machines} |" in PAGE
    assert choose("mxnet", "", on(Card("NVIDIA H100 80GB HBM3", (9, 0)))).line in PAGE
    assert choose("jax", "", on(*[Card("NVIDIA A100-SXM4-40GB", (8, 0))] * 2)).line in PAGE
    assert f"| `{choose('pytorch', '', on(AMPERE, version='535.183.01')).why}` |" in PAGE
    assert f"| `{find_driver(None)}` |" in PAGE
    for gpus in (0, 2):
        with pytest.raises(RequestError) as refused:
            DeviceRequest(4, "gpu", threads=1).settled(gpus, "JAX")
        assert f"`{str(refused.value).partition(':')[0].partition(' tells')[0]}`" in PAGE
    says(place, "Failed to initialize NVML: Driver/library version mismatch\nNVML: 535.261\n")
    assert f"| `{find_driver(None)}` |" in PAGE
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    (place / "version").write_text("NVRM version: NVIDIA UNIX Kernel Module  580.95.05  Release")
    told, _, helps = str(find_driver(None)).partition(": ")
    assert f"| `{told}` |" in PAGE
    assert "--gpus all" in helps


OLD = 'case "$*" in *compute_cap*) echo compute_cap; exit 2;; esac; cat $0.said'
"""It does not know the capability."""

TWO = "580.95.05, GPU-11, NVIDIA H100 80GB HBM3, 9.0\n580.95.05, GPU-22, NVIDIA A100, 8.0\n"


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, "HA"),
        ("1,0", "AH"),
        ("1,7,0", "A"),
        ("GPU-2,GPU-1", "AH"),
        ("MIG-8f0e", "H"),
        ("-1", ""),
    ],
)
def test_cuda_visible_devices_chooses(place: Path, visible: str | None, names: str) -> None:
    says(place, TWO)
    hopper = Card("NVIDIA H100 80GB HBM3", (9, 0), "GPU-11")
    known = {"H": hopper, "A": Card("NVIDIA A100", (8, 0), "GPU-22")}
    hidden = f"CUDA_VISIBLE_DEVICES={visible} hides all GPUs"
    cards = tuple(known[each] for each in names)
    assert find_driver(visible) == (Driver("580.95.05", cards) if cards else hidden)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("418.87.00, GPU-3, Tesla V100\n", OLD),
        ("418.87.00, GPU-3, Tesla V100, [N/A]\n", "cat $0.said"),
        ("GPU1: GPU is lost.\n418.87.00, GPU-3, Tesla V100, \n", "cat $0.said; exit 15"),
    ],
    ids=["old", "not supported", "beside a lost one"],
)
def test_a_card_may_not_tell_its_capability(place: Path, text: str, script: str) -> None:
    says(place, text, script)
    assert find_driver(None) == Driver("418.87.00", (Card("Tesla V100", None, "GPU-3"),))


@pytest.mark.parametrize(
    ("text", "script", "told"),
    [
        ("No devices were found\n", "cat $0.said; exit 6", "No devices were found"),
        ("[N/A], [N/A], [N/A], [N/A]\n", "cat $0.said", "[N/A], [N/A], [N/A], [N/A]"),
        ("", "exit 137", "nothing, and ends with status 137"),
        ("", "exec sleep 60", "nothing within 1 s"),
    ],
)
def test_why_there_is_none_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, text: str, script: str, told: str
) -> None:
    monkeypatch.setattr(driver, "DRIVER_TIMEOUT", 1)
    says(place, text, script)
    assert find_driver(None) == f"no GPU can be used, nvidia-smi says: {told}"
