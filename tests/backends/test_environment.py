"""The table of what a framework reads of the environment, and all that follows from it."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agreement import edit
from fake_chapter import EVERY, RECORD, CommandLine, stopping, written
from together import COUNT, Together, together as together, wait_until

from common.backends.environment import Environment
from common.backends.loading import import_backend
from common.base.errors import RequestError
from common.compare.folder import examine
from common.report.text import subtitle

TABLE = Environment(
    decided={"TOY_LAYOUT": "last", "TOY_DTYPE": None},
    defaults={"TOY_FAST": "1", "TOY_LOG": "2"},
    rounding=("TOY_FAST", "TOY_ISA"),
    breaking=("TOY_PLUGIN",),
    fatal=("TOY_FLAGS",),
    trial="import os; exit('in vain' if 'TOY_FLAGS' in os.environ else 0)",
)
JAX: Any = {"frameworks": ["jax"]}
BLAMED = "pytorch reads TOY_ISA=avx2, TOY_PLUGIN=none, which is set in the environment"


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A framework that reads the variables of this table, of which none is set."""
    for name in ("TOY_LAYOUT", "TOY_DTYPE", *TABLE.rounding, "TOY_LOG", "TOY_PLUGIN", "TOY_FLAGS"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.setattr("frameworks.pytorch.ENVIRONMENT", TABLE)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line of PyTorch with a chapter that needs none, in a folder of its own."""
    return CommandLine(monkeypatch, tmp_path)


def failing(step: int) -> float:
    raise ValueError(f"no such plugin, in step {step}\nand so on")


def test_what_is_decided_is_set_and_a_default_leaves_what_a_reader_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TOY_LAYOUT", "TOY_DTYPE", "TOY_FAST"):
        monkeypatch.setenv(name, "mine")
    TABLE.apply()
    found = {name: value for name, value in os.environ.items() if name.startswith("TOY_")}
    assert found == {"TOY_LAYOUT": "last", "TOY_FAST": "mine", "TOY_LOG": "2"}


def test_what_may_change_rounding_is_found_where_it_is_not_as_in_other_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    TABLE.apply()
    monkeypatch.setenv("TOY_ISA_SECRET", "hush")
    assert TABLE.found() == {}
    monkeypatch.setenv("TOY_ISA", "avx2 \udcff")
    assert TABLE.found() == {"TOY_ISA": r"avx2 \udcff"}
    monkeypatch.setenv("TOY_FAST", "0")
    assert TABLE.found() == {"TOY_FAST": "0", "TOY_ISA": r"avx2 \udcff"}


def test_a_variable_that_ends_a_framework_is_named_and_one_that_does_not_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    TABLE.require_harmless("toy")  # without it, nothing is tried
    monkeypatch.setenv("TOY_FLAGS", "--none")
    told = r"^toy ends when it reads TOY_FLAGS=--none \(in vain\): set it right, or unset it$"
    with pytest.raises(RequestError, match=told):
        TABLE.require_harmless("toy")
    Environment(fatal=("TOY_FLAGS",), trial="pass").require_harmless("toy")


def test_what_a_framework_raises_names_the_variables_in_line_and_record(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOY_ISA", "avx2")
    monkeypatch.setenv("TOY_PLUGIN", "none")
    assert start("--quiet", loss=failing) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"error: ValueError: no such plugin, in step 1; {BLAMED}")
    record = written()
    assert record["failure"]["message"] == line.partition("error: ")[2]
    assert record["environment"] == {"TOY_ISA": "avx2"}


def test_the_role_of_a_process_is_forgotten_before_a_framework_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_ROLE", "server")
    Environment(roles=("TOY_ROLE",)).forget()
    assert "TOY_ROLE" not in os.environ


def test_a_framework_that_cannot_be_loaded_is_not_called_missing_if_a_variable_may_be_to_blame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_ISA", "avx2")
    monkeypatch.setenv("TOY_PLUGIN", "none")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "frameworks.pytorch.chapters", None)  # it is not there
        told = r"None in sys.modules\): `nox -s pytorch` installs it"
        with pytest.raises(RequestError, match=told):
            import_backend("pytorch", "scratch", 1)

    def broken(*_: object) -> None:
        raise ImportError("no such plugin")

    monkeypatch.setattr("common.backends.loading.backend", broken)
    told = rf"\(no such plugin; {BLAMED}\): set it right, or unset it"
    with pytest.raises(RequestError, match=told):
        import_backend("pytorch", "scratch", 1)


def test_a_run_that_resumes_tells_of_a_variable_that_is_another(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOY_ISA", "avx2")
    assert start(*EVERY, loss=stopping(3)) == 143
    assert written()["environment"] == {"TOY_ISA": "avx2"}
    monkeypatch.delenv("TOY_ISA")
    capsys.readouterr()
    assert start(*EVERY, "--resume", "--quiet") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "written with another setup: TOY_ISA avx2 there, not set here; with the old one" in line
    path = next(Path("kept").glob("*-step3.json"))
    assert start(f"--resume-from={path}", *EVERY[2:]) == 0
    assert "it may round otherwise: TOY_ISA avx2 there, not set here" in capsys.readouterr().err
    assert written()["resumed"][0]["differences"] == ["TOY_ISA avx2 there, not set here"]
    monkeypatch.setenv("TOY_ISA", "avx2")
    assert start(*EVERY, "--resume") == 0
    assert RECORD.exists()


def test_the_comparison_names_it_above_a_table(results: Path) -> None:
    edit(results / "float64" / "jax-scratch-2dev.json", environment={"TOY_ISA": "avx2"})
    (examined,) = examine(results, **JAX)
    assert "; TOY_ISA=avx2 in jax on 2" in subtitle(examined.comparison)


def test_processes_in_which_it_differs_do_not_train_together(together: Together) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: "waiting for 2\n" in runs[0].err())
    others = {"frameworks.pytorch.ENVIRONMENT": Environment(rounding=("HOME",))}
    status, said = together.start(2, patches=others).ended()
    assert (status, said.count("\n")) == (2, 1), said
    told = f"variables that may change rounding is HOME={os.environ['HOME']} on "
    assert told in said
    assert ", and none on " in said
    runs.append(together.start(2))
    assert [run.ended()[0] for run in runs] == [0] * COUNT
