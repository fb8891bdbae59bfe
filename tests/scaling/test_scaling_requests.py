"""Which requests `python -m common.scaling` refuses, and what it says."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from clocks import scaled

from common.scaling import __main__ as command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scaling.json"
    path.write_text(scaled().model_dump_json(by_alias=True))
    return path


Refused = Callable[..., str]


@pytest.fixture
def refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Asserts that a request is refused in one line and writes nothing; returns the line."""
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(command, "find_spec", lambda name: None)

    def check(*flags: str) -> str:
        try:
            status: Any = command.main(flags)
        except SystemExit as end:
            status = end.code
        assert status == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(r"python -m common\.scaling: error: .+\n", err), err
        assert not Path("results").exists()
        return err

    return check


WHOLE = "is not a whole number of at least 1"
HOSTS = "--coordinator=localhost:1 --hosts=2 --host-rank=0"
FLAWS = {
    "": "no framework is installed in this Python: `nox -s scaling`",
    "--framework torch": "choose from .*pytorch",
    "--threads 0": f"--threads: '0' {WHOLE}",
    "--sizes 5 0": f"--sizes: '0' {WHOLE}",
    "--latency 0": "--latency: '0' is not a number above 0",
    "--bandwidth nan": "--bandwidth: 'nan' is not a number above 0",
    "--addition fast": "--addition: 'fast' is not a number above 0",
    "--rate 1e300": r"--rate 1e\+300: choose from 1e-06 to 1e\+12",
    "--latency 1e-300": "--latency 1e-300: choose from",
    "--measured nowhere.json": "nowhere.json cannot be read",
    "--measured scaling.json --sizes 5": "leave --framework, --sizes and other hosts out",
    "--measured scaling.json --framework jax": "leave --framework, --sizes and other hosts out",
    "--measured scaling.json --hosts 2": "leave --framework, --sizes and other hosts out",
    "--framework jax --hosts 2": "--coordinator, --hosts and --host-rank go together",
    f"--framework mxnet {HOSTS}": "mxnet has no messages from one process to another",
    "--measured scaling.json --out scaling.json/x": "cannot write to scaling.json/x",
    "--late 5": "unrecognized arguments: --late 5",
}


@pytest.mark.parametrize(("flags", "complaint"), FLAWS.items(), ids=FLAWS.keys())
def test_a_bad_request_is_refused_in_one_line(refused: Refused, flags: str, complaint: str) -> None:
    assert re.search(complaint, refused(*flags.split()))


def test_several_processes_are_told_by_name_what_to_measure(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "installed", lambda framework: framework == "jax")
    assert "name the --framework that all measure" in refused(*HOSTS.split())


@pytest.mark.parametrize("name", ["scaling.json", "scaling.svg"])
def test_what_cannot_become_a_file_is_refused_before_it_measures(
    refused: Refused, tmp_path: Path, name: str
) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / name)
    line = refused("--out=out")
    assert f"error: --out: cannot write to out/{name}: it is a pipe, not a file" in line


@pytest.mark.parametrize(
    ("where", "value", "complaint"),
    [
        (("schema",), 2, "schema"),
        (("measured", "colour"), "red", "measured.colour Extra inputs"),
        (("measured", "copy_rate"), -1, "measured.copy_rate"),
        (("measured", "costs", "message", "short"), None, "measured.costs.message.short"),
        (("constants", "latency", "value"), 0, "constants.latency.value"),
    ],
)
def test_a_file_that_was_tampered_with_is_refused_by_field(
    refused: Refused, file: Path, where: Sequence[str], value: object, complaint: str
) -> None:
    document = json.loads(file.read_text())
    part = document
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    file.write_text(json.dumps(document))
    line = refused("--measured", "scaling.json")
    assert "scaling.json is not a scaling.json of schema 3" in line
    assert complaint in line
