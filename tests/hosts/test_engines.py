"""Processes that an engine joins compute what one host with as many devices does."""

from pathlib import Path

import numpy as np
import pytest
from engines import FLAGS, Engine
from safetensors.numpy import load_file
from started import python

from common.chapters.concise import BATCH_NORMS
from common.records.store import read_record

pytestmark = [pytest.mark.hosts, pytest.mark.only("pytorch", "tensorflow", "jax")]

LIMIT = 1e-10


@pytest.mark.parametrize("mode", BATCH_NORMS)
@pytest.mark.parametrize("count", [2, 3])
def test_processes_compute_what_one_host_does(
    framework: str, count: int, mode: str, tmp_path: Path
) -> None:
    flags = "--steps=3", f"--batch-norm={mode}"
    engine = Engine(framework, count, tmp_path / "said")
    engine.finish(*flags, f"--out={tmp_path / 'several'}")
    assert (tmp_path / "said").read_text().count("test acc: ") == 1
    command = "-m", f"frameworks.{framework}.concise", *FLAGS, *flags
    one = python(*command, f"--devices={count}", f"--out={tmp_path / 'one'}")
    assert one.returncode == 0, one.stderr
    name = f"{framework}-concise-{count}dev.json"
    several, alone = (read_record(tmp_path / folder / name) for folder in ("several", "one"))
    assert several.cluster
    assert len(several.cluster.hosts) == count
    np.testing.assert_allclose(several.losses, alone.losses, rtol=0, atol=LIMIT)
    ours, theirs = (
        load_file((tmp_path / folder / name).with_suffix(".safetensors"))
        for folder in ("several", "one")
    )
    assert ours.keys() == theirs.keys()
    for tensor in ours:
        np.testing.assert_allclose(ours[tensor], theirs[tensor], rtol=0, atol=LIMIT, err_msg=tensor)
