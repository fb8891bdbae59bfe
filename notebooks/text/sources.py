"""Listings: definitions cut out of the project's files by name, so that what is printed is run."""

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from common.base.errors import RunError

ROOT: Final = Path(__file__).parents[2]

LONGEST: Final = 88
"""Columns of an import in one line."""

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class SourceFile:
    """A file of the project, by what its top level binds."""

    def __init__(self, path: Path) -> None:
        """Reads it. Raises OSError if there is no such file."""
        text = path.read_text(encoding="utf-8")
        self.path, self.lines = path, text.splitlines()
        self.module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        self.imports: dict[str, str] = {}
        self.definitions: dict[str, Definition] = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports |= bound_by(node)
            elif isinstance(node, Definition):
                self.definitions |= dict.fromkeys(names_of(node), node)

    def cut(self, name: str) -> str:
        """The text of a definition, its decorators included. Raises RunError if there is none."""
        if name not in self.definitions:
            raise RunError(f"{self.path.relative_to(ROOT)} defines no {name!r}")
        node = self.definitions[name]
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        return "\n".join(self.lines[first - 1 : node.end_lineno])

    def needs(self, name: str) -> list[str]:
        """The names of the file's top level that a definition uses, in the order of the file."""
        nodes = list(ast.walk(self.definitions[name]))
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        own.update(names_of(self.definitions[name]))
        return [each for each in [*self.imports, *self.definitions] if each in used - own]


@cache
def source_file(path: Path) -> SourceFile:
    """The file, read once."""
    return SourceFile(path)


def bound_by(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """By each name that an import binds: the import of this name alone."""
    start = f"from {node.module} import" if isinstance(node, ast.ImportFrom) else "import"
    return {
        each.asname or each.name: f"{start} {each.name}"
        + (f" as {each.asname}" if each.asname not in (None, each.name) else "")
        for each in node.names
    }


def names_of(node: Definition) -> list[str]:
    """The names that a definition binds: two for `A, B = 1, 2`."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
    ]


@dataclass
class Listings:
    """The listings of one notebook: each brings the imports that none before it has brought."""

    known: dict[str, str] = field(default_factory=dict)

    def cell(self, path: Path, names: Sequence[str]) -> str:
        """The definitions as one cell, after what they need of their file."""
        file = source_file(path)
        texts = [file.cut(name) for name in names]
        needed = [each for name in names for each in file.needs(name) if each not in names]
        imports, aliases = self._brought(file, dict.fromkeys(needed))
        self.known |= {name: f"from {file.module} import {name}" for name in names}
        brought = "\n\n".join(filter(None, [joined(imports), "\n".join(aliases)]))
        return "\n\n\n".join(filter(None, [brought, *texts]))

    def _brought(self, file: SourceFile, needed: Iterable[str]) -> tuple[list[str], list[str]]:
        """The imports and the names of types that are not known yet."""
        imports: list[str] = []
        aliases: list[str] = []
        for name in needed:
            here = f"from {file.module} import {name}"
            if name in file.imports:
                way, places = file.imports[name], imports
            elif isinstance(file.definitions[name], ast.Assign | ast.AnnAssign):
                inner, before = self._brought(file, file.needs(name))
                imports, aliases = [*imports, *inner], [*aliases, *before]
                way, places = file.cut(name), aliases
            else:
                way, places = here, imports
            if self.known.get(name) not in (way, here):
                bound = [name] if places is imports else names_of(file.definitions[name])
                self.known |= dict.fromkeys(bound, way)
                places.append(way)
        return imports, aliases


def joined(imports: Iterable[str]) -> str:
    """Imports as `isort` writes them: the standard library's, others, and the project's own."""
    modules: dict[str, list[str]] = {}
    for line in sorted(set(imports)):
        start, _, name = line.rpartition(" import ")
        single = not start or " as " in name
        modules.setdefault(line if single else start, []).extend([] if single else [name])
    groups = groupby(sorted(modules, key=import_order), lambda line: import_order(line)[0])
    texts = ("\n".join(wrapped(line, modules[line]) for line in group) for _, group in groups)
    return "\n\n".join(texts)


def import_order(line: str) -> tuple[int, bool, str]:
    """Where an import stands: by whose it is, `import x` before `from x`, by name."""
    module = line.split()[1]
    package = module.split(".")[0]
    own = (ROOT / package).is_dir()
    return 2 if own else package not in sys.stdlib_module_names, line.startswith("from"), module


def wrapped(start: str, names: Sequence[str]) -> str:
    """One import of all these names, in several lines where one would be too long."""
    line = f"{start} import {', '.join(names)}" if names else start
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{start} import (", *(f"    {name}," for name in names), ")"])
