"""Importing `common` or the package of a backend loads no framework."""

from pathlib import Path

from started import python

ROOT = Path(__file__).parents[2]
LIBRARIES = ("torch", "tensorflow", "jax", "mxnet")


def test_no_framework_is_loaded(tmp_path: Path) -> None:
    """Frameworks are empty packages here."""
    for name in LIBRARIES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    paths = [*(ROOT / "common").rglob("[!_]*.py"), *ROOT.glob("frameworks/*/__init__.py")]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    assert {"common.training.loop", "frameworks.jax.__init__"} <= {*modules}
    lines = ["import sys", *(f"import {name}; {LOADED}" for name in modules)]
    done = python("-c", "\n".join(lines), folder=tmp_path, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (done.returncode, done.stderr) == (0, "")


LOADED = f"assert not {{*{LIBRARIES}}} & {{*sys.modules}}"
