"""The table of GPUs says what a folder of `nox -s gpu` holds, and "not run" of all else."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from agreement import edit, reseal
from gpu_runs import (
    BOTH,
    Rounds,
    judged,
    made as made,
    run,
    with_gpu_runs as with_gpu_runs,
)

from common.backends.frameworks import FRAMEWORKS
from common.gpus import BEGIN, END, KEPT, PAGE, kept, main
from common.records.store import read_record
from common.report.text import write_verdict

ROOT = Path(__file__).parents[2]
CARDS = {"gpus": "2 x NVIDIA A100", "driver": "580.95.05"}
EMPTY = " | not run" * 5 + " |"
REPORT = '<testsuites><testsuite tests="{}" errors="1" failures="2" skipped="3"/></testsuites>'


@pytest.fixture
def left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the session has left of three frameworks; MXNet's build does not serve these cards."""
    for path in (folder / "gpu").rglob("*dev.json"):
        edit(path, machine=read_record(path).machine | CARDS)
    write_verdict(folder, judged(folder))
    (folder / "docs").mkdir()
    (folder / PAGE).write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.chdir(folder)
    return folder


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}


def bench(folder: Path, *rates: tuple[str, str, int, str, float]) -> None:
    names = ("framework", "chapter", "devices", "contender")
    samples = [
        {**dict(zip(names, each[:4], strict=True)), "kind": "gpu"}
        | {"figures": {"images_per_second": [each[4]]}}
        for each in rates
    ]
    found = {"created": "", "machine": {}, "rounds": 1, "samples": samples}
    (folder / "bench.json").write_text(json.dumps(found))


def test_the_readme_says_what_was_run() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert f"{BEGIN}\n\n{kept().table()}\n\n{END}" in page


def test_what_was_not_run_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main([]) == 0
    found = rows(capsys)
    assert [found[name] for name in FRAMEWORKS] == [f"| {name}{EMPTY}" for name in FRAMEWORKS]


def test_the_table_says_what_the_folder_holds(
    left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (left / "jax-tests.xml").write_text(REPORT.format(10))
    (left / "pytorch-tests.xml").write_text(
        '<testsuite tests="7" errors="0" failures="0" skipped="0"/>'
    )
    bench(left, ("jax", "scratch", 1, "ours", 51234.5), ("jax", "scratch", 2, "ours", 60000.0))
    assert main([str(left)]) == 0
    found = rows(capsys)
    verdict = judged(left)
    (checks,) = {
        sum(each.framework == name for each in verdict.comparisons[1].checks)
        for name in ("pytorch", "jax")
    }
    date = verdict.created[:10]
    where = f"1 and 2 of 2 x NVIDIA A100, driver 580.95.05, {date} | {checks} passed"
    assert found["pytorch"] == f"| pytorch | {where} | 7 passed | not run | not run |"
    assert found["tensorflow"] == f"| tensorflow | {where} | not run | not run | not run |"
    told = "**6 of 10 tests failed** | 51,234 and 60,000 | not run |"
    assert found["jax"] == f"| jax | {where} | {told}"
    assert found["mxnet"] == "| mxnet | it has no build for 2 x NVIDIA A100 |  |  |  |  |"


def test_a_check_that_failed_is_told(left: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(left, "jax", 2, Rounds(), "gpu")
    (left / BOTH[1].folder / "tensorflow-scratch-1dev.json").unlink()
    write_verdict(left, verdict := judged(left))
    failed = [each.framework for each in verdict.comparisons[1].checks if not each.passed]
    assert main([str(left)]) == 0
    found = rows(capsys)
    assert f"| **{failed.count('jax')} of " in found["jax"]
    assert "| 2 of 2 x NVIDIA A100" in found["tensorflow"]
    assert f"| **{failed.count('tensorflow')} of " in found["tensorflow"]


def test_it_is_written_beside_what_was_known(
    left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(left), "--write"]) == 0
    table = capsys.readouterr().out.strip()
    page = (left / PAGE).read_text(encoding="utf-8")
    assert page == f"before\n{BEGIN}\n\n{table}\n\n{END}\nafter\n"
    # Somebody else has an older card, for which there is MXNet's build.
    known = json.loads((left / KEPT).read_text())
    known["frameworks"]["mxnet"] |= {
        "gpus": "1 x Tesla T4",
        "devices": [1],
        "checks": {"passed": 9},
    }
    known["frameworks"]["jax"]["driver"] = "1.2"
    (left / KEPT).write_text(json.dumps(known))
    assert main([str(left), "--write"]) == 0
    again = (left / PAGE).read_text(encoding="utf-8")
    assert "| mxnet | 1 of 1 x Tesla T4" in again
    assert "1.2" not in again
    assert main(["--write"]) == 0
    assert (left / PAGE).read_text(encoding="utf-8") == again


def gone(folder: Path) -> str:
    (folder / BOTH[1].folder / "jax-scratch-2dev.json").unlink()
    return "the records of jax that were compared are gone"


def of_cpus(folder: Path) -> str:
    name = "jax-scratch-2dev.json"
    path = folder / BOTH[1].folder / name
    path.write_bytes((folder / BOTH[0].folder / name).read_bytes())
    return f"{name} is no record of a run on GPUs that went well"


def changed(folder: Path) -> str:
    path = folder / BOTH[1].folder / "jax-scratch-2dev.json"
    path.write_text(path.read_text().replace("A100", "H100"))
    return "is no record of a run on GPUs that went well"


def later(folder: Path) -> str:
    path = folder / BOTH[1].folder / "jax-scratch-2dev.json"
    edit(path, started="2126-01-01T00:00:00+00:00")
    assert reseal(path)
    return "is of a run after the comparison"


def on_cpus_alone(folder: Path) -> str:
    verdict = judged(folder)
    verdict.comparisons = verdict.comparisons[:1]
    write_verdict(folder, verdict)
    return "compares nothing on GPUs"


def report(folder: Path) -> str:
    (folder / "jax-tests.xml").write_text("<html>")
    return "jax-tests.xml is no report of pytest"


@pytest.mark.parametrize("spoil", [gone, of_cpus, changed, later, on_cpus_alone, report])
def test_what_cannot_be_is_refused(
    spoil: Callable[[Path], str], left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = spoil(left)
    before = (left / PAGE).read_text()
    with pytest.raises(Exception, match=expected):
        main([str(left), "--write"])
    assert (left / PAGE).read_text() == before
    assert not (left / KEPT).exists()


def test_a_folder_without_a_comparison(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"parity.json: `nox -s gpu` leaves one"):
        main([str(tmp_path)])


def test_a_name_from_elsewhere_is_text_alone(
    left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (left / "gpu").rglob("jax*dev.json"):
        edit(path, machine=read_record(path).machine | {"gpus": "2 x <b>|`A`\n# [x](y)"})
    write_verdict(left, judged(left))
    assert main([str(left)]) == 0
    assert "| jax | 1 and 2 of 2 x bA x(y), driver" in rows(capsys)["jax"]
