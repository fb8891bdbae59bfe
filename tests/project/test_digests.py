"""What is not listed, or not what is listed, is not installed: neither by uv nor by pip."""

import hashlib
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from sessions.support import Environment


def wheel(folder: Path, name: str, needs: str) -> str:
    """The digest of a wheel, made here, of a package of nothing."""
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needs}",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for each, text in files.items():
            file.writestr(f"{name}-1.dist-info/{each}", text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment, and with two wheels, one of which needs the other."""
    folder = tmp_path_factory.mktemp("house")
    subprocess.run([sys.executable, "-m", "venv", folder / "made"], check=True)
    return folder


@pytest.mark.parametrize("tool", ["uv", "pip"])
@pytest.mark.parametrize("case", ["right", "another digest", "no digest", "not listed"])
def test_only_what_is_listed_is_installed(house: Path, tool: str, case: str) -> None:
    if tool == "uv" and not find_spec("uv"):
        pytest.skip("uv is not in this environment")
    toy, needy = wheel(house, "toy", ""), wheel(house, "needy", "Requires-Dist: toy\n")
    lines = {
        "right": f"toy==1 --hash=sha256:{toy}",
        "another digest": f"toy==1 --hash=sha256:{needy}",
        "no digest": "toy==1",
        "not listed": "",
    }
    pins = house / "pins.txt"
    pins.write_text(f"needy==1 --hash=sha256:{needy}\n{lines[case]}\n")
    ways = list(Environment(house / "made", [pins]).ways())
    (_, install) = ways[0 if tool == "uv" else -1]
    places = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "UV_FIND_LINKS": str(house)}
    places |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(house)}
    more = ["--target", str(house / f"{tool} {case}")]
    env = os.environ | places
    done = subprocess.run([*install, *more], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (case == "right"), done.stderr
    assert case == "right" or "hash" in done.stderr.lower()
