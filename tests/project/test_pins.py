"""Everything that is installed has one version and its digests."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from common.backends.frameworks import FRAMEWORKS
from sessions import pins as pin_files

CONSTRAINTS = Path(__file__).parents[2] / "constraints"
FILES = [*pin_files.PINS, "torch-cpu"]
CUDA = {
    "tensorflow-cuda": ("tensorflow", "tensorflow-cpu"),
    "jax-cuda": ("jax", "jax"),
    "mxnet-cuda": ("mxnet-cu112", "mxnet"),
}
"""By the file of a build for GPUs: what the framework is called there, and in that for CPUs."""

TOGETHER = [
    *((each, "notebooks") for each in (*FRAMEWORKS, *CUDA)),
    ("bench-jax", "jax-cuda"),
    *((each, "torch") for each in ("pytorch", "bench-pytorch", "notebooks")),
]
"""The files that are installed into one environment."""

PIN = re.compile(r"[a-z0-9-]+==\S+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n")


def read(name: str) -> str:
    return (CONSTRAINTS / f"{name}.txt").read_text(encoding="utf-8")


def pins(name: str) -> dict[str, str]:
    """By the name of a package: its lines, without the machines that they are for."""
    found = (match.group().replace(match.group(1) or "", "") for match in PIN.finditer(read(name)))
    return {lines.partition("==")[0]: lines for lines in found}


def test_a_file_has_versions_with_digests_and_nothing_else() -> None:
    assert {path.stem for path in CONSTRAINTS.iterdir()} == {*FILES, "licences"}
    for name in FILES:
        title, _, rest = read(name).partition("\n")
        assert title.startswith("# ")
        assert PIN.sub("", rest) == ""
        assert len(pins(name)) == len(PIN.findall(rest))


@pytest.mark.parametrize("name", pin_files.PINS)
def test_a_file_has_what_the_project_asks_for(name: str) -> None:
    versions = pin_files.versions(read(name))
    if name in ("pytorch", "bench-pytorch"):
        versions |= pin_files.versions(read("torch"))
    for need in map(Requirement, pin_files.wanted(name)):
        assert versions[pin_files.canonical(need.name)] in need.specifier, need


@pytest.mark.parametrize(
    ("one", "other"), [*TOGETHER, *((name, name.removesuffix("-cuda")) for name in CUDA)]
)
def test_files_agree_that_are_installed_together_or_in_place_of_each_other(
    one: str, other: str
) -> None:
    some, others = pins(one), pins(other)
    shared = some.keys() & others.keys()
    assert {name: some[name] for name in shared} == {name: others[name] for name in shared}


def test_both_builds_of_a_framework_are_of_one_version() -> None:
    assert {name for name in pin_files.PINS if name.endswith(pin_files.CUDA)} == CUDA.keys()
    for name, (own, cpu) in CUDA.items():
        there = pin_files.versions(read(name.removesuffix(pin_files.CUDA)))
        assert pin_files.versions(read(name))[own] == there[cpu]
    texts = read("torch-cpu"), read("torch")
    cpu, other = (pin_files.versions(text)["torch"] for text in texts)
    assert cpu == f"{other}+cpu"
    digests = [set(re.findall("[0-9a-f]{64}", text)) for text in texts]
    assert not digests[0] & digests[1]


@pytest.mark.parametrize("name", [*FRAMEWORKS, "common", "notebooks", "site", "nox"])
def test_what_needs_no_gpu_gets_no_cuda(name: str) -> None:
    assert not [each for each in pins(name) if re.match("nvidia|cuda|.*-cu[0-9]|torch", each)]


def test_of_a_package_wheels_are_listed_and_its_source_only_without_any() -> None:
    """A source is run when it is installed."""
    tags = ("cp39-abi3-macosx_11_0_arm64", "py3-none-any", "cp311-cp311-musllinux_1_2_x86_64")
    urls = [f"https://x.example/toy-1.0-{tag}.whl" for tag in tags]
    wheels = [{"url": url, "hashes": {"sha256": str(each)}} for each, url in enumerate(urls)]
    toy = {"name": "toy", "version": "1", "sdist": {"hashes": {"sha256": "source"}}}
    lines = " \\\n    --hash=sha256:".join(["toy==1", "0", "1"])
    assert pin_files.entry({**toy, "wheels": wheels}) == f"{lines}\n"
    source = "toy==1 \\\n    --hash=sha256:source\n"
    assert pin_files.entry({**toy, "wheels": wheels[2:]}) == source
