"""The files of constraints/: what each is for, and how `nox -s pins` writes it.

Only the standard library, and uv where a file is written.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from common.base.files import write_text

_MANIFEST: Final = Path(__file__).parents[1] / "pyproject.toml"

PROJECT: Final = tomllib.loads(_MANIFEST.read_text("utf-8"))["project"]

COMMON: Final = ("dependencies", "common", "browser", "test")
"""What an environment that needs no framework is made of."""

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
    "bench-pytorch": (*RUN, "pytorch", "bench-pytorch"),
    "bench-jax": (*RUN, "jax", "tensorflow", "bench-jax"),
    "d2l": ("d2l",),
}
"""By the name of a file: the extras that it has the versions of, and the project's own needs."""

CUDA: Final = "-cuda"
"""What the names of builds for GPUs end in; PyTorch's is torch.txt, beside pytorch.txt."""

BUILD: Final = re.compile("torch|triton|(cuda|nvidia)-.+")
"""What stands in torch.txt alone: torch-cpu.txt takes its place where that build can be had."""

SUPPORTED: Final = re.compile(
    r"-(?!cp\d+t|pypy)[^-]+-(any|[^-]*manylinux[^-]*(x86_64|aarch64)|macosx[^-]*|win_a[^-]*)\.whl$"
)
"""Wheels for CPython on Linux, macOS and Windows, as far as any framework has some."""


def canonical(name: str) -> str:
    """A package's name as every file in constraints/ has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def versions(text: str) -> dict[str, str]:
    """By the name of a package: its version in the text of such a file."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE))


def wanted(name: str) -> list[str]:
    """What the project asks for and the file `name` answers."""
    extras = {"dependencies": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    return [need for extra in PINS[name] for need in extras[extra]]


def write(name: str) -> None:
    """Writes the file in the versions that it names; a package that is not in it is the newest.

    A build for GPUs has the versions of that for CPUs, of all that both have.
    """
    base = name.removesuffix(CUDA)
    beside = "torch" if base == name else base
    build, file = (Path("constraints") / f"{each}.txt" for each in (beside, name))
    known = versions("".join(each.read_text("utf-8") for each in (file, build) if each.exists()))
    found = tomllib.loads(resolved(name, known))["packages"]
    if base == name:  # CUDA is a file of its own for PyTorch alone
        found = [each for each in found if bool(BUILD.fullmatch(each["name"])) == (name == "torch")]
    title = "# Written by `nox -s pins`: versions, and the digests that installing checks.\n"
    write_text(file, title + "".join(map(entry, found)))


def resolved(name: str, known: Mapping[str, str]) -> str:
    """What uv finds for all machines and Pythons, as a pylock.toml."""
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    python = PROJECT["requires-python"].removeprefix(">=")
    alone = ["--no-deps"] if name == "d2l" else []
    with TemporaryDirectory() as folder:
        kept = Path(folder, "known.txt")
        kept.write_text("".join(f"{package}=={it}\n" for package, it in known.items()))
        files = ["--constraints", str(kept), "--format=pylock.toml", "-"]
        command = [*uv, f"--python-version={python}", *alone, *files]
        needs = "\n".join(wanted(name))
        done = subprocess.run(command, input=needs, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def entry(package: Mapping[str, Any]) -> str:
    """A package's lines: its wheels for what is supported, and its source only without any."""
    wheels = [each for each in package.get("wheels", ()) if SUPPORTED.search(each["url"])]
    files = wheels or [package["sdist"]]
    digests = sorted(each["hashes"]["sha256"] for each in files)
    marker = f" ; {package['marker']}" if "marker" in package else ""
    pin = f"{package['name']}=={package['version']}{marker}"
    return " \\\n    ".join([pin, *(f"--hash=sha256:{each}" for each in digests)]) + "\n"
