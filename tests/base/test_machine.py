"""What a record says of its machine."""

import platform
from pathlib import Path

import pytest

from common.base.machine import cpu_information, processor, vectors


def test_a_processor_is_named_with_its_vector_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "aarch64")
    x86 = {"model name": "A Name", "flags": "fpu sse avx avx2 avx512f"}
    assert processor(x86) == "A Name (AVX2, AVX-512)"
    assert processor({"model name": "A Name"}) == "A Name"
    assert processor({"Features": "fp asimd sve"}) == "aarch64 (NEON, SVE)"
    assert vectors({"flags": "avx512fp16"}) == []


def test_the_first_core_speaks_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"processor\t: {i}\nmodel name\t: Core: {i}\nflags\t\t: fpu\n" for i in (0, 1)]
    source = tmp_path / "cpuinfo"
    source.write_text("\n".join(texts), encoding="utf-8")
    monkeypatch.setattr("common.base.machine.Path", lambda _: source)
    expected = {"processor": "0", "model name": "Core: 0", "flags": "fpu"}
    assert {key: cpu_information()[key] for key in expected} == expected
    source.unlink()  # as on other systems
    assert cpu_information() == {}
