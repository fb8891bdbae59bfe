"""What `nox -s audit` looks at: the licences of all packages, and known weaknesses in them.

Only the standard library.
"""

import json
import re
from collections.abc import Container, Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from common.base.files import write_text
from sessions.pins import canonical, versions

FILE: Final = Path(__file__).parents[1] / "constraints" / "licences.txt"

TITLE: Final = """\
# What each package says its licence is. `nox -s audit -- --write` writes this file.
# A package that is not installed, or says nothing, keeps its line; its first one is added by hand.
"""

SPELLINGS: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "GNU General Public License (GPL)": "GPL",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "NVIDIA Proprietary Software": "LicenseRef-NVIDIA-Proprietary",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""By what packages write: the name that SPDX has for it. Many do not say which BSD they mean."""

PERMISSIVE: Final = frozenset(
    {
        "0BSD",
        "AFL-2.1",
        "Apache-2.0",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "LLVM-exception",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Zlib",
    }
)
"""Such a package may be used and passed on by all who keep its notice."""

ALLOWED: Final = PERMISSIVE | {
    "MPL-2.0",  # asks for changes to its own files alone; this project changes none
}

EXCEPTIONS: Final = {
    "docutils": "the GPL is that of its mode for Emacs, which its wheel leaves out",
    "nvidia-.+|cuda-toolkit": "CUDA comes along with builds for GPUs, and only with them",
}
"""By the names of packages: why they may have a licence that is not allowed to others."""

Licences = set[tuple[str, str]]
"""Names and licences; a package has two where two versions of it say different things."""


def stated(expression: str | None, classifiers: Iterable[str], field: str | None) -> str:
    """The licence that a package's metadata has, the most exact statement first; empty if none."""
    if expression:
        return expression
    kinds = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    exact = [each for each in kinds if each != "Other/Proprietary License"]
    said = exact or (field or "").strip().splitlines()[:1] or kinds
    return " AND ".join(SPELLINGS.get(each, each) for each in said)


def installed(environment: Path) -> Licences:
    """What the packages in an environment say."""
    folders = [str(folder) for folder in environment.glob("lib/python*/site-packages")]
    return {
        (
            canonical(each.name),
            stated(
                each.metadata["License-Expression"],
                each.metadata.get_all("Classifier") or (),
                each.metadata["License"],
            ),
        )
        for each in distributions(path=folders)
    }


def read(text: str) -> Licences:
    """What a text like that of `FILE` lists."""
    lines = [line.split(maxsplit=1) for line in text.splitlines() if not line.startswith("#")]
    return {(name, licence) for name, licence in lines}


def pinned() -> set[str]:
    """The packages that any file in constraints/ has a version of."""
    files = FILE.parent.glob("*.txt")
    return {name for file in files for name in versions(file.read_text(encoding="utf-8"))}


def write(found: Licences, names: Container[str]) -> None:
    """Writes `FILE`: of `names` what is `found`, or the line that it had."""
    said = {pair for pair in found if pair[1]}
    known = {name for name, _ in said}
    kept = {pair for pair in read(FILE.read_text(encoding="utf-8")) if pair[0] not in known}
    lines = [f"{name:<30} {licence}\n" for name, licence in sorted(said | kept) if name in names]
    write_text(FILE, TITLE + "".join(lines))


def faults(found: Licences, names: Iterable[str], listed: Licences) -> Iterator[str]:
    """What is wrong, line by line: not listed, listed with another licence, or not allowed."""
    known = dict(sorted(listed))
    for name in sorted({*names, *dict(found)} - {*known}):
        yield f"{name} is not listed in {FILE.name}"
    for name, licence in sorted(found - listed):
        if licence and name in known:
            yield f"{name} is listed with {known[name]}, but says {licence}"
    for name, licence in sorted(listed):
        parts = set(re.split(r"\s+(?:AND|OR|WITH)\s+|[()]+", licence)) - {""}
        if parts - ALLOWED and not re.fullmatch("|".join(EXCEPTIONS), name):
            yield f"{name} has a licence that is not allowed: {', '.join(sorted(parts - ALLOWED))}"


def weaknesses(report: str) -> tuple[list[str], set[str], set[str]]:
    """From pip-audit's report: weaknesses, and the packages that it could and could not look up.

    It leaves no report where it cannot ask at all.
    """
    packages = json.loads(report)["dependencies"] if report else []
    unknown = {each["name"] for each in packages if "skip_reason" in each}
    known = {each["name"]: each["vulns"] for each in packages if each["name"] not in unknown}
    weak = [f"{name} is known for {each['id']}" for name in known for each in known[name]]
    return weak, set(known), unknown
