"""A notebook in Jupyter Lab, in a browser: its pictures show, a kernel starts.

`nox -s notebooks` runs the cells, in the same folder.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_tabs import NEEDED
from playwright.sync_api import Browser, expect

from notebooks.text.notebook import notebook, text_of

pytestmark = NEEDED


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a Jupyter Lab beside a notebook that has not run yet."""
    python = request.config.getoption("--jupyter")
    if python is None:
        pytest.skip("--jupyter names no Python with Jupyter Lab")
    runtime = tmp_path / "runtime"
    text = text_of(notebook("multiple-gpus", "jax"))
    (tmp_path / "multiple-gpus.ipynb").write_text(text, encoding="utf-8")
    command = [str(Path(python).absolute()), "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.port=0", "--IdentityProvider.token=", f"--notebook-dir={tmp_path}"]
    places = {f"JUPYTER_{name}_DIR": str(runtime) for name in ("RUNTIME", "CONFIG", "DATA")}
    environment = {**os.environ, **places, "JUPYTER_CONFIG_PATH": "", "IPYTHONDIR": str(runtime)}
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **quiet) as started:
        try:
            # The file is there before anything is in it.
            while not any(path.read_text() for path in runtime.glob("jpserver-*.json")):
                assert started.poll() is None, "Jupyter Lab has not started"
                time.sleep(0.1)
            (path,) = runtime.glob("jpserver-*.json")
            yield json.loads(path.read_text())["url"]
        finally:
            started.kill()  # else it may wait for a kernel


def test_a_notebook_opens_with_its_pictures_and_a_kernel(server: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    lab: Any = context.new_page()
    lab.goto(f"{server}lab/tree/multiple-gpus.ipynb")
    idle = lab.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
    expect(idle).to_be_attached(timeout=60_000)
    # Another user has made the notebook, which Jupyter Lab does not trust.
    picture = lab.locator('.jp-OutputArea img[alt="Three ways to split training over devices"]')
    expect(picture).to_be_visible(timeout=60_000)
    assert picture.evaluate("image => image.naturalWidth") > 300
    context.close()
