"""The files of constraints/: versions and digests of installed packages, written by uv."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PROJECT: Final[dict[str, Any]] = tomllib.loads(Path("pyproject.toml").read_text())["project"]

COMMON: Final = ("dependencies", "common", "browser", "test")
"""The extras of an environment that needs no framework."""

RUN: Final = ("dependencies", "test")

PINS: Final[Mapping[str, Iterable[str]]] = {
    "nox": ("nox",),
    "common": (*COMMON, "manifest", "nox"),  # its tests make environments
    "lint": (*COMMON, "lint"),
    "site": (*COMMON, "notebooks", "site"),
    "notebooks": ("notebooks",),
    "audit": ("audit",),
    "torch": ("pytorch",),
    "pytorch": (*RUN, "pytorch"),
    "tensorflow": (*RUN, "tensorflow"),
    "jax": (*RUN, "jax"),
    "mxnet": (*RUN, "mxnet"),
    "tensorflow-cuda": (*RUN, "tensorflow-cuda"),
    "jax-cuda": (*RUN, "jax-cuda"),
    "mxnet-cuda": (*RUN, "mxnet-cuda"),
    "bench-pytorch": ("bench-pytorch",),
    "bench-jax": ("bench-jax",),
    "d2l": ("d2l",),
}
"""For each file: the extras of pyproject.toml that it pins, and the project's dependencies."""

BUILD: Final = re.compile("torch|triton|(cuda|nvidia)-.+")
"""Packages of PyTorch's build for GPUs, pinned in torch.txt: torch-cpu.txt may replace it."""


def path_of(name: str) -> Path:
    """The file of this name."""
    return Path("constraints", f"{name}.txt")


def versions(text: str) -> dict[str, str]:
    """The version of each package in the text of such a file."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE))


def wanted(name: str) -> list[str]:
    """The requirements of pyproject.toml that a file pins."""
    extras = {"dependencies": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    return [need for extra in PINS[name] for need in extras[extra]]


def write(name: str) -> None:
    """Writes a file for all machines; uv keeps the versions that it has, and adds newest ones."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    command += ["--generate-hashes", "--no-annotate", "--custom-compile-command=nox -s pins"]
    command += [f"--python-version={PROJECT['requires-python'].removeprefix('>=')}"]
    command += [*flags(name), f"--output-file={path_of(name)}", "-"]
    subprocess.run(command, input="\n".join(wanted(name)), text=True, check=True)


def flags(name: str) -> Iterator[str]:
    """Flags of uv for one file: versions of the files installed with it, packages left out."""
    base = "pytorch" if name == "torch" else name.removesuffix("-cuda").removeprefix("bench-")
    if base != name:
        yield f"--constraints={path_of(base)}"
    if name == "d2l":  # it pins old versions of its dependencies
        yield "--no-deps"
    if name in ("pytorch", "bench-pytorch"):
        yield f"--constraints={path_of('torch')}"
        build = filter(BUILD.fullmatch, versions(path_of("torch").read_text("utf-8")))
        yield from (f"--no-emit-package={package}" for package in build)
