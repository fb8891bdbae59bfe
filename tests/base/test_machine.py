"""What a record says of its machine."""

import platform
from pathlib import Path

import pytest

from common.base.machine import cpu_information, describe_machine, processor, vectors

X86 = {"model name": "A Name", "flags": "fpu sse avx avx2 avx512f"}
"""As Linux describes a core."""


def test_a_processor_is_named_with_its_vector_instructions() -> None:
    assert processor(X86) == "A Name (AVX2, AVX-512)"


def test_a_name_alone_is_enough() -> None:
    assert processor({"model name": "A Name"}) == "A Name"


def test_vector_instructions_are_whole_words() -> None:
    assert vectors({"flags": "avx512fp16"}) == []


def test_where_linux_gives_no_name_the_platform_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "aarch64")
    assert processor({"Features": "fp asimd sve"}) == "aarch64 (NEON, SVE)"
    assert processor({}) == "aarch64"


def test_a_machine_that_says_nothing_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor({}) == "unknown"


def test_this_machine_has_cores_and_a_processor() -> None:
    described = describe_machine()
    assert isinstance(described["cores"], int)
    assert described["cores"] >= 1
    assert described["processor"]


@pytest.mark.parametrize("cores", [1, 2])
def test_the_first_core_speaks_for_all(
    cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"processor\t: {i}\nmodel name\t: Core: {i}\nflags\t\t: fpu\n" for i in range(cores)]
    source = tmp_path / "cpuinfo"
    source.write_text("\n".join(texts), encoding="utf-8")
    monkeypatch.setattr("common.base.machine.Path", lambda _: source)
    expected = {"processor": "0", "model name": "Core: 0", "flags": "fpu"}
    assert {key: cpu_information()[key] for key in expected} == expected


def test_other_systems_say_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.base.machine.Path", lambda _: tmp_path / "missing")
    assert cpu_information() == {}
