"""Neither `common` nor the package of a backend loads a framework, when it is imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARIES = ("torch", "tensorflow", "jax", "mxnet")


def test_no_framework_is_loaded(tmp_path: Path) -> None:
    """Frameworks are empty packages here: importing one succeeds in every environment."""
    for name in LIBRARIES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    paths = [*(ROOT / "common").rglob("[!_]*.py"), *ROOT.glob("frameworks/*/__init__.py")]
    modules = [".".join(each.relative_to(ROOT).with_suffix("").parts) for each in paths]
    assert {"common.training.loop", "frameworks.jax.__init__"} <= {*modules}
    lines = ["import sys", *(f"import {each}; {LOADED}" for each in modules)]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


LOADED = f"assert not {{*{LIBRARIES}}} & {{*sys.modules}}"
