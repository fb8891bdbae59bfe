"""What nvidia-smi may answer: cards, or one of the many ways in which it does not tell of any.

The texts and statuses are those of real ones, of the releases 470 to 550.
"""

import os
import time
from pathlib import Path

import pytest

from common.backends import driver
from common.backends.driver import Card, Driver, find_driver, in_words

H100 = "580.95.05, GPU-11, NVIDIA H100 80GB HBM3, 9.0\n"
A100 = "580.95.05, GPU-22, NVIDIA A100-SXM4-40GB, 8.0\n"
HOPPER = Card("NVIDIA H100 80GB HBM3", (9, 0), "GPU-11")
AMPERE = Card("NVIDIA A100-SXM4-40GB", (8, 0), "GPU-22")


def fake(folder: Path, script: str) -> None:
    """An nvidia-smi that does what a script says."""
    folder.mkdir(exist_ok=True)
    made = folder / "nvidia-smi"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)


def says(folder: Path, text: str, status: int = 0) -> None:
    (folder / "said").write_bytes(text.encode("utf-8", "surrogateescape"))
    fake(folder, f"cat {folder}/said; exit {status}")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(driver, "FOLDERS", ())
    monkeypatch.setattr(driver, "LOADED", tmp_path / "version")
    return tmp_path


def test_a_driver_tells_its_version_and_cards(place: Path) -> None:
    says(place, H100 + A100)
    assert find_driver(None) == Driver("580.95.05", (HOPPER, AMPERE))


@pytest.mark.parametrize(
    ("visible", "cards"),
    [
        ("0,1", [HOPPER, AMPERE]),
        ("1,0", [AMPERE, HOPPER]),
        ("1", [AMPERE]),
        ("1,7,0", [AMPERE]),
        ("GPU-22", [AMPERE]),
        ("GPU-2,GPU-1", [AMPERE, HOPPER]),
        ("MIG-8f0e", [HOPPER]),
    ],
)
def test_cuda_visible_devices_chooses(place: Path, visible: str, cards: list[Card]) -> None:
    says(place, H100 + A100)
    assert find_driver(visible) == Driver("580.95.05", tuple(cards))


@pytest.mark.parametrize("visible", ["", "-1", "7", "none", "GPU-9", ","])
def test_cuda_visible_devices_may_hide_all(place: Path, visible: str) -> None:
    says(place, H100 + A100)
    assert find_driver(visible) == f"CUDA_VISIBLE_DEVICES={visible} hides all GPUs"


@pytest.mark.parametrize("told", ["[N/A]", "[Not Supported]", "[Unknown Error]", ""])
def test_a_card_that_does_not_tell_its_capability_is_one(place: Path, told: str) -> None:
    says(place, f"535.261.03, GPU-1, NVIDIA X, {told}\n")
    assert find_driver(None) == Driver("535.261.03", (Card("NVIDIA X", None, "GPU-1"),))


DEAD = {
    "couldn't communicate": (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.\n\n",
        9,
    ),
    "libnvidia-ml.so": ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n\n", 12),
    "version mismatch": (
        "Failed to initialize NVML: Driver/library version mismatch\n"
        "NVML library version: 535.261\n",
        18,
    ),
    "Insufficient Permissions": ("Failed to initialize NVML: Insufficient Permissions\n", 4),
    "access blocked": ("Failed to initialize NVML: GPU access blocked by the operating system", 17),
    "No devices were found": ("No devices were found\n", 6),
    "number of GPUs": ("Unable to determine the number of GPUs", 255),
    "GPU is lost": (
        "Unable to determine the device handle for GPU0: GPU is lost.  Reboot the system to "
        "recover this GPU\n\n\n",
        15,
    ),
    "reset must occur": (
        "Unable to determine the device handle for GPU0: A GPU reset must occur before this GPU "
        "can be used again.\n",
        255,
    ),
    "N/A": ("[N/A], [N/A], [N/A], [N/A]\n", 0),
    "nothing, and ends with status 0": ("", 0),
    "nothing, and ends with status 137": ("\n", 137),
    "Mismatch in versions": (
        "Mismatch in versions between nvidia-smi and NVML.\nAre you sure",
        255,
    ),
}


@pytest.mark.parametrize("words", DEAD)
def test_why_there_is_none_is_one_line(place: Path, words: str) -> None:
    says(place, *DEAD[words])
    found = find_driver(None)
    assert isinstance(found, str)
    assert found.startswith("no GPU can be used, nvidia-smi says: ")
    assert words in found
    assert "\n" not in found


def test_a_healthy_card_beside_a_lost_one_is_used(place: Path) -> None:
    says(place, "Unable to determine the device handle for GPU1: GPU is lost.\n" + H100, 15)
    assert find_driver(None) == Driver("580.95.05", (HOPPER,))


def test_no_bytes_are_too_odd(place: Path) -> None:
    says(place, "580.1, GPU-1, NVIDIA \udcff\x1b[31m\u202e, 9.0\n\udcfe")
    found = find_driver(None)
    assert isinstance(found, Driver)
    assert found.cards[0].name == "NVIDIA �\\x1b[31m\\u202e"


def test_one_that_hangs_is_not_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "DRIVER_TIMEOUT", 1)
    fake(place, "exec sleep 60")
    begun = time.monotonic()
    assert find_driver(None) == "no GPU can be used, nvidia-smi says: nothing within 1 s"
    assert time.monotonic() - begun < 10


def test_one_that_cannot_be_run_is_told_of(place: Path) -> None:
    fake(place, "")
    (place / "nvidia-smi").write_bytes(b"\x00\x01")
    found = find_driver(None)
    assert isinstance(found, str)
    assert "it cannot be run: Exec format error" in found


def test_without_any_there_is_no_driver(place: Path) -> None:
    os.environ["PATH"] = str(place)
    assert find_driver(None) == "there is no NVIDIA driver here"


def test_a_driver_that_a_container_does_not_reach_is_told_of(place: Path) -> None:
    os.environ["PATH"] = str(place)
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 2023"
    (place / "version").write_text(f"{text}\nGCC version:  gcc version 12.3.0\n")
    found = find_driver(None)
    assert isinstance(found, str)
    assert found.startswith("the driver 535.104.05 is loaded, but there is no nvidia-smi: ")


def test_where_path_leaves_it_out_it_is_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place / "lib"
    folder.mkdir()
    says(folder, H100)
    monkeypatch.setattr(driver, "FOLDERS", (str(folder),))
    assert isinstance(find_driver(None), Driver)


def test_cards_are_counted_as_people_do() -> None:
    assert in_words([HOPPER, AMPERE, HOPPER]) == (
        "2 x NVIDIA H100 80GB HBM3, 1 x NVIDIA A100-SXM4-40GB"
    )
