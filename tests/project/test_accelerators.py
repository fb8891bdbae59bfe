"""Sessions install a build for GPUs where driver and cards support it."""

import re
from pathlib import Path
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base import machine
from common.base.errors import RequestError
from common.base.machine import Card, find_cards
from sessions.accelerators import BUILDS, choose

AMPERE, HOPPER = ("NVIDIA A100", (8, 0)), ("NVIDIA H100", (9, 0))
PAGE = (Path(__file__).parents[2] / "docs/gpu.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


@pytest.mark.parametrize(
    ("version", "card", "cuda", "why"),
    [
        ("580.65.06", AMPERE, FRAMEWORKS, ""),
        ("580.65", AMPERE, FRAMEWORKS[1:], "580.65 is too old for CUDA 13.0, which takes 580.65"),
        ("1000.1", HOPPER, FRAMEWORKS[:3], "5.0 to 8.9, and not for 1 x NVIDIA H100 (9.0)"),
        ("1000.1", ("NVIDIA X", None), FRAMEWORKS, ""),
    ],
)
def test_a_build_is_chosen_if_driver_and_card_suit_it(
    version: str, card: tuple[str, Any], cuda: tuple[str, ...], why: str
) -> None:
    cards = (Card(version, *card),)
    assert [choose("jax", asked, ()).cuda for asked in ("", "cuda")] == [False, True]
    assert choose("jax", "cpu", cards).why == "ACCELERATOR=cpu"
    assert tuple(name for name in FRAMEWORKS if choose(name, "", cards).cuda) == cuda
    for name in set(FRAMEWORKS) - set(cuda):
        assert why in choose(name, "", cards).why
        with pytest.raises(RequestError, match=f"{re.escape(why)}.*; ACCELERATOR=cpu does"):
            choose(name, "cuda", cards)


def test_the_page_has_the_builds_and_the_lines() -> None:
    for name, build in BUILDS.items():
        names = {"x86_64": "x86-64", "aarch64": "ARM"}
        machines = ", ".join(names[machine] for machine in build.machines)
        cells = name, build.cuda, build.driver, build.cards(), machines
        assert f"| {' | '.join(map(str, cells))} |" in PAGE
    jax = choose("jax", "", (Card("580.95.05", "NVIDIA A100-SXM4-40GB", (8, 0)),) * 2)
    assert f"jax runs in .nox/{jax.name}: {jax.why}" in PAGE
    assert f"`{choose('pytorch', '', (Card('535.183.01', *AMPERE),)).why}`" in PAGE
    assert f"`{choose('jax', '', ()).why}`" in PAGE


@pytest.mark.parametrize(
    ("answer", "visible", "expected"),
    [
        ("echo 580.1, X, 9.0; echo 580.1, Y, 8.0", None, ["X", "Y"]),
        ("echo 580.1, X, 9.0; echo 580.1, Y, 8.0", "1,0", ["Y", "X"]),
        ("echo 580.1, X, 9.0; echo 580.1, Y, 8.0", "MIG-1f", ["X"]),
        ("echo 580.1, X, 9.0", "-1", []),
        ("echo 'GPU is lost.'; echo '418.8, V100, [N/A]'; exit 15", None, ["V100"]),
        ("exec sleep 60", None, []),
    ],
)
def test_what_nvidia_smi_answers(
    answer: str,
    visible: str | None,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(machine, "DRIVER_TIMEOUT", 1)
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert [card.name for card in find_cards(visible)] == expected
