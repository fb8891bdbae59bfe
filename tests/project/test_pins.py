"""Everything that is installed has one version, digests, and a licence that is listed."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sessions import pins as pin_files

CONSTRAINTS = Path(__file__).parents[2] / "constraints"
FILES = [*pin_files.PINS, "torch-cpu"]
FRAMEWORKS = ("pytorch", "tensorflow", "jax", "mxnet")
CUDA = [name for name in pin_files.PINS if name.endswith(pin_files.CUDA)]
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


def test_there_is_a_file_for_each_purpose() -> None:
    assert {path.stem for path in CONSTRAINTS.iterdir()} == {*FILES, "licences"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_versions_with_digests_and_nothing_else(name: str) -> None:
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


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_files_that_are_installed_together_agree(one: str, other: str) -> None:
    some, others = pins(one), pins(other)
    shared = some.keys() & others.keys()
    assert {name: some[name] for name in shared} == {name: others[name] for name in shared}


@pytest.mark.parametrize("name", CUDA)
def test_a_build_for_gpus_has_the_versions_of_that_for_cpus(name: str) -> None:
    ours, theirs = pins(name), pins(name.removesuffix(pin_files.CUDA))
    others = {each for each in ours.keys() & theirs.keys() if ours[each] != theirs[each]}
    assert not others
    frameworks = {"tensorflow-cuda": ("tensorflow", "tensorflow-cpu")}
    own, cpu = frameworks.get(name, ("mxnet-cu112", "mxnet") if "mxnet" in name else ("jax", "jax"))
    versions = [pin_files.versions(read(each)) for each in (name, name.removesuffix("-cuda"))]
    assert versions[0][own] == versions[1][cpu]


@pytest.mark.parametrize("name", [*FRAMEWORKS, "common", "notebooks", "site", "nox"])
def test_who_has_no_gpu_gets_no_cuda(name: str) -> None:
    assert not [each for each in pins(name) if re.match("nvidia|cuda|.*-cu[0-9]|torch", each)]


def test_both_builds_of_pytorch_are_of_one_version() -> None:
    cpu, other = (pin_files.versions(read(name))["torch"] for name in ("torch-cpu", "torch"))
    assert cpu == f"{other}+cpu"
    assert not set(re.findall("[0-9a-f]{64}", read("torch-cpu"))) & set(
        re.findall("[0-9a-f]{64}", read("torch"))
    )


def lines_of(*tags: str) -> str:
    """What a file says of a package with wheels of these tags; each digest is a wheel's number."""
    place = "https://x.example/toy-1.0"
    urls = [f"{place}-{tag}.whl" for tag in tags]
    wheels = [{"url": url, "hashes": {"sha256": str(each)}} for each, url in enumerate(urls)]
    source = {"url": f"{place}.tar.gz", "hashes": {"sha256": "source"}}
    return pin_files.entry({"name": "toy", "version": "1", "sdist": source, "wheels": wheels})


def test_the_digests_of_a_package_are_those_of_wheels_that_can_be_used() -> None:
    used = [
        "py3-none-any",
        "cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64",
        "cp39-abi3-macosx_11_0_arm64",
        "cp311-cp311-win_arm64",
    ]
    others = [
        "cp311-cp311-musllinux_1_2_x86_64",
        "cp313-cp313t-win_amd64",
        "pp311-pypy311_pp73-macosx_10_15_x86_64",
        "cp312-cp312-manylinux2014_ppc64le",
        "cp311-cp311-win32",
    ]
    digests = "".join(f" \\\n    --hash=sha256:{each}" for each in range(len(used)))
    assert lines_of(*used, *others) == f"toy==1{digests}\n"
    # A package's source is run when it is installed: it is listed only if there is nothing else.
    assert lines_of(*others) == "toy==1 \\\n    --hash=sha256:source\n"
