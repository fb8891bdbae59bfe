"""Which modules load a framework: one backend its own, and nothing else any."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
LIBRARIES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax", "mxnet": "mxnet"}
LOADED_BY = """
import importlib, json, sys
found = {}
for name in sys.argv[1:]:
    importlib.import_module(name)
    found[name] = sorted(sys.modules)
print(json.dumps(found))
"""


def loaded_by(
    modules: Sequence[str], pretended: Sequence[str], folder: Path
) -> dict[str, set[str]]:
    """What is in sys.modules after each import, in a process where `pretended` are installed too.

    They are empty packages: so an import that should not be there succeeds, and is seen, in
    every environment.
    """
    for name in pretended:
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    path = os.pathsep.join([str(ROOT), str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", LOADED_BY, *modules],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    return {name: set(found) for name, found in json.loads(done.stdout).items()}


def test_neither_common_nor_the_package_of_a_backend_loads_a_framework(tmp_path: Path) -> None:
    modules = [path.relative_to(ROOT) for path in sorted((ROOT / "common").rglob("[!_]*.py"))]
    common = [".".join(path.with_suffix("").parts) for path in modules]
    assert "common.training.loop" in common
    packages = ["frameworks", *(f"frameworks.{name}" for name in FRAMEWORKS)]
    loaded = loaded_by([*common, *packages], list(LIBRARIES.values()), tmp_path)
    for name, found in loaded.items():
        forbidden = {*LIBRARIES.values(), *(packages if name in common else ())}
        assert found & forbidden == set(), name


def test_a_backend_loads_its_own_framework_and_no_other(framework: str, tmp_path: Path) -> None:
    name, own = f"frameworks.{framework}.chapters", LIBRARIES[framework]
    others = [other for other in FRAMEWORKS if other != framework]
    loaded = loaded_by([own, name], [LIBRARIES[other] for other in others], tmp_path)
    assert {own, f"frameworks.{framework}.devices"} <= loaded[name]
    forbidden = {LIBRARIES[other] for other in others} | {f"frameworks.{other}" for other in others}
    # TensorFlow itself looks for JAX, which is not the backend's doing.
    assert (loaded[name] - loaded[own]) & forbidden == set()
