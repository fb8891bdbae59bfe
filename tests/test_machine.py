"""What a record says of its machine."""

import platform

import pytest

from common.machine import describe_machine, processor

X86 = """\
processor\t: 0
model name\t: A Name
flags\t\t: fpu sse avx avx2 avx512f

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""


def test_a_processor_is_named_with_its_vector_instructions() -> None:
    assert processor(X86) == "A Name (AVX2, AVX-512)"


def test_a_name_alone_is_enough() -> None:
    assert processor("model name : A Name\n") == "A Name"


def test_where_linux_gives_no_name_the_platform_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "aarch64")
    assert processor("Features : fp asimd sve") == "aarch64 (NEON, SVE)"
    assert processor("") == "aarch64"


def test_a_machine_that_says_nothing_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor("") == "unknown"


def test_this_machine_has_cores_and_a_processor() -> None:
    described = describe_machine()
    assert isinstance(described["cores"], int)
    assert described["cores"] >= 1
    assert described["processor"]
