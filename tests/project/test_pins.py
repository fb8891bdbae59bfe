"""Everything that is installed has one version and its digests."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from common.backends.frameworks import FRAMEWORKS
from sessions.pins import PINS, versions, wanted

CONSTRAINTS = Path(__file__).parents[2] / "constraints"
CUDA = ("tensorflow-cuda", "jax-cuda", "mxnet-cuda")

TOGETHER = [
    *((each, "notebooks") for each in (*FRAMEWORKS, *CUDA, "torch")),
    *((each, each.removesuffix("-cuda")) for each in CUDA),
    *(("bench-jax", each) for each in ("jax", "jax-cuda")),
    *(("bench-pytorch", each) for each in ("pytorch", "torch")),
    ("pytorch", "torch"),
]
"""The files that are installed into one environment, or one in place of the other."""

PIN = re.compile(r"[a-z0-9-]+==\S+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n")


def read(name: str) -> str:
    return (CONSTRAINTS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*PINS, "torch-cpu"])
def test_a_file_has_versions_with_digests_and_nothing_else(name: str) -> None:
    comments = re.sub(PIN, "", read(name)).splitlines()
    assert all(line.startswith("# ") for line in comments), comments


@pytest.mark.parametrize("name", PINS)
def test_a_file_has_what_the_project_asks_for(name: str) -> None:
    found = versions(read(name)) | versions(read("torch") if "pytorch" in name else "")
    for need in map(Requirement, wanted(name)):
        assert found[canonicalize_name(need.name)] in need.specifier, need


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_files_agree_that_are_installed_together(one: str, other: str) -> None:
    some, others = versions(read(one)), versions(read(other))
    assert {k: some[k] for k in some if others.get(k, some[k]) != some[k]} == {}


@pytest.mark.parametrize("name", [*FRAMEWORKS, "common", "notebooks", "site", "bench-pytorch"])
def test_what_needs_no_gpu_gets_no_cuda(name: str) -> None:
    pinned = versions(read(name))
    assert not [each for each in pinned if re.match("nvidia|cuda|triton|torch|.*-cu[0-9]", each)]
