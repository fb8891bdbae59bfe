"""Listings: definitions cut out of the project's files by name, so that printed code is run."""

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
    """A file of the project, by the names that its top level binds."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.path, self.lines = path, text.splitlines()
        self.module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        self.imports: dict[str, str] = {}
        self.definitions: dict[str, Definition] = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    single = type(node)(**{**vars(node), "names": [alias]})
                    self.imports[alias.asname or alias.name] = ast.unparse(single)
            elif isinstance(node, Definition):
                self.definitions |= dict.fromkeys(names_of(node), node)

    def cut(self, name: str) -> str:
        """The text of a definition with its decorators. Raises RunError if there is none."""
        if name not in self.definitions:
            raise RunError(f"{self.path.relative_to(ROOT)} defines no {name!r}")
        node = self.definitions[name]
        first = min(part.lineno for part in [node, *getattr(node, "decorator_list", [])])
        return "\n".join(self.lines[first - 1 : node.end_lineno])

    def needs(self, name: str) -> list[str]:
        """The names of the file's top level that a definition uses, in the order of the file."""
        nodes = list(ast.walk(self.definitions[name]))
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
        bound.update(names_of(self.definitions[name]))
        return [name for name in [*self.imports, *self.definitions] if name in used - bound]


source_file: Final = cache(SourceFile)
"""The file of a path, read once."""


def names_of(node: Definition) -> list[str]:
    """The names that a definition binds: two for `A, B = 1, 2`."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    nodes = [node for target in targets for node in ast.walk(target)]
    return [node.id for node in nodes if isinstance(node, ast.Name)]


@dataclass
class Listings:
    """The listings of one notebook: each adds the imports that no earlier one has."""

    known: dict[str, str] = field(default_factory=dict)

    def cell(self, path: Path, names: Sequence[str]) -> str:
        """The definitions as one cell, after the imports and aliases that they need."""
        file = source_file(path)
        texts = [file.cut(name) for name in names]
        needed = [use for name in names for use in file.needs(name) if use not in names]
        imports, aliases = self._new(file, dict.fromkeys(needed))
        self.known |= {name: f"from {file.module} import {name}" for name in names}
        head = "\n\n".join(filter(None, [sort_imports(imports), "\n".join(aliases)]))
        return "\n\n\n".join(filter(None, [head, *texts]))

    def _new(self, file: SourceFile, needed: Iterable[str]) -> tuple[list[str], list[str]]:
        """The imports and aliases of types that are not known yet."""
        imports: list[str] = []
        aliases: list[str] = []
        for name in needed:
            here = f"from {file.module} import {name}"
            if name in file.imports:
                line, target = file.imports[name], imports
            elif isinstance(file.definitions[name], ast.Assign | ast.AnnAssign):
                inner, before = self._new(file, file.needs(name))
                imports, aliases = [*imports, *inner], [*aliases, *before]
                line, target = file.cut(name), aliases
            else:
                line, target = here, imports
            if self.known.get(name) not in (line, here):
                bound = [name] if target is imports else names_of(file.definitions[name])
                self.known |= dict.fromkeys(bound, line)
                target.append(line)
        return imports, aliases


def sort_imports(imports: Iterable[str]) -> str:
    """Imports as `isort` writes them: of the standard library, of others, of the project."""
    modules: dict[str, list[str]] = {}
    for line in sorted(set(imports)):
        start, _, name = line.rpartition(" import ")
        single = not start or " as " in name
        modules.setdefault(line if single else start, []).extend([] if single else [name])
    groups = groupby(sorted(modules, key=import_order), lambda line: import_order(line)[0])
    texts = ("\n".join(wrap(line, modules[line]) for line in group) for _, group in groups)
    return "\n\n".join(texts)


def import_order(line: str) -> tuple[int, bool, str]:
    """The sort key of an import: origin, `import x` before `from x`, name."""
    module = line.split()[1]
    package = module.split(".")[0]
    ours = (ROOT / package).is_dir()
    return 2 if ours else package not in sys.stdlib_module_names, line.startswith("from"), module


def wrap(start: str, names: Sequence[str]) -> str:
    """One import of all these names, in several lines if one would be too long."""
    line = f"{start} import {', '.join(names)}" if names else start
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{start} import (", *(f"    {name}," for name in names), ")"])
