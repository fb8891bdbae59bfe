"""A notebook in a real Jupyter Lab, in a real browser: opened in its folder, all cells run."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, FLAGS, NEEDED
from playwright.sync_api import Page, expect, sync_playwright

from common.base.errors import RunError
from notebooks.text.notebook import failure, notebook, read, write

ROOT = Path(__file__).parents[2]

CHAPTER_TIMEOUT = 300
"""Seconds for all cells of a chapter, in which a class would train twice."""

pytestmark = NEEDED


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nobody has run a notebook yet."""
    folder = tmp_path_factory.mktemp("clone")
    for room in ("common", "frameworks", "notebooks"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    write(folder / "notebooks/jax/multiple-gpus.ipynb", notebook("multiple-gpus", "jax"))
    return folder


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, clone: Path, tmp_path_factory: Any) -> Iterator[str]:
    """The address of a Jupyter Lab that was started in the folder of JAX's notebooks."""
    python = request.config.getoption("--jupyter")
    if python is None:
        pytest.skip("--jupyter names no Python with Jupyter Lab")
    runtime = tmp_path_factory.mktemp("runtime")
    command = [str(Path(python).absolute()), "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.port=0", "--IdentityProvider.token=", f"--notebook-dir={clone}"]
    places = {f"JUPYTER_{name}_DIR": str(runtime) for name in ("RUNTIME", "CONFIG", "DATA")}
    with subprocess.Popen(
        command,
        cwd=clone / "notebooks" / "jax",
        env={**os.environ, **places, "JUPYTER_CONFIG_PATH": "", "IPYTHONDIR": str(runtime)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as started:
        try:
            yield address(runtime, started)
        finally:
            started.terminate()


def address(runtime: Path, started: "subprocess.Popen[bytes]") -> str:
    """Where the server answers, as it says itself."""
    for _ in range(600):
        for path in runtime.glob("jpserver-*.json"):
            with suppress(ValueError):  # it is there before anything is in it
                url: str = json.loads(path.read_text())["url"]
                return url
        assert started.poll() is None
        time.sleep(0.1)
    raise AssertionError("Jupyter Lab has not started")


@pytest.fixture
def lab(server: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{server}lab/tree/notebooks/jax/multiple-gpus.ipynb", timeout=60_000)
        yield page
        browser.close()


def test_all_cells_run_in_jupyter_lab(lab: Page, clone: Path) -> None:
    expect(lab.locator(".jp-Notebook h1").first).to_have_text(
        "Training on multiple GPUs¶", timeout=60_000
    )
    expect(lab.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')).to_be_attached(
        timeout=60_000
    )
    # Somebody else has made the notebook: what Jupyter Lab does not trust, it shows as words.
    picture = lab.locator('.jp-OutputArea img[alt="Three ways to split training over devices"]')
    expect(picture).to_be_visible(timeout=60_000)
    assert picture.evaluate("image => image.naturalWidth") > 300
    run_all(lab)
    found = finished(lab, clone / "notebooks/jax/multiple-gpus.ipynb")
    assert failure(found) == ""
    outputs = [output for cell in found.cells for output in cell.get("outputs", [])]
    assert sum("image/svg+xml" in output.get("data", {}) for output in outputs) >= 4
    assert sum("test acc: " in output.get("text", "") for output in outputs) == 2


def run_all(lab: Page) -> None:
    """Runs all cells: asked again until the kernel is at work, as a menu may close too early."""
    busy = lab.locator('.jp-Notebook-ExecutionIndicator[data-status="busy"]')
    for _ in range(3):
        lab.get_by_role("menuitem", name="Run", exact=True).click()
        lab.get_by_text("Run All Cells", exact=True).click()
        with suppress(AssertionError):
            expect(busy).to_be_attached(timeout=20_000)
            return
    raise AssertionError("the kernel does not begin")


def finished(lab: Page, path: Path) -> Any:
    """The notebook once every cell has run, as Jupyter saves it."""
    until, left = time.monotonic() + CHAPTER_TIMEOUT, ""
    while time.monotonic() < until:
        lab.wait_for_timeout(2000)
        lab.keyboard.press("Control+s")
        with suppress(RunError):  # Jupyter may be about to write it
            found = read(path)
            code = [cell for cell in found.cells if cell.cell_type == "code"]
            waiting = [cell.source for cell in code if not cell.execution_count]
            if failure(found) or not waiting:
                return found
            left = waiting[0]
    raise AssertionError(f"not every cell has run in time; the first that has not: {left}")
