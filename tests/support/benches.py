"""A Python that answers measurements with made-up figures."""

import json
import sys
from pathlib import Path

DATA = {"name": "synthetic", "sha256": "0" * 64, "train_examples": 1, "test_examples": 1}
FIGURES = {"images_per_second": 6000.0, "first_step": 3.0, "peak_memory": 2.0**30}
ANSWER = {"figures": FIGURES, "data": DATA, "versions": {"jax": "1"}}


def fake_python(folder: Path, succeeds: str) -> str:
    """The flag for a Python; `succeeds` is an expression of `calls`, their number, and `words`.

    The file `calls` in the folder gets a line for each measurement: what it is and sees.
    """
    path, calls = folder / "python", str(folder / "calls")
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\nwords = sys.argv[3:8]\n"
        f"with open({calls!r}, 'a+') as file:\n"
        "    print(os.environ.get('CUDA_VISIBLE_DEVICES'), *words, file=file, flush=True)\n"
        "    file.seek(0)\n    calls = len(file.readlines())\n"
        f"print('noise')\nprint({json.dumps(ANSWER)!r})\nprint('noise')\n"
        f"exit(not ({succeeds}))"
    )
    path.chmod(0o755)
    return f"--python=jax={path}"
