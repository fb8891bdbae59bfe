"""The table of GPUs says what a folder of `nox -s gpu` holds, and "not run" of all else."""

import json
from pathlib import Path

import pytest
from agreement import edit
from gpu_runs import (
    BOTH,
    CARDS,
    Rounds,
    bench,
    judged,
    made as made,
    run,
    what_is_left as what_is_left,
    with_gpu_runs as with_gpu_runs,
)

from common.backends.frameworks import FRAMEWORKS
from common.gpus import BEGIN, END, KEPT, PAGES, kept, main
from common.records.store import read_record
from common.report.text import write_verdict

ROOT = Path(__file__).parents[2]
EMPTY = " | not run" * 5 + " |"
REPORT = '<testsuites><testsuite tests="{}" errors="1" failures="2" skipped="3"/></testsuites>'


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_says_what_was_run(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert f"{BEGIN}\n\n{kept().table()}\n\n{END}" in text


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
    no_figures = "**no figures** | **no figures** |"
    assert found["pytorch"] == f"| pytorch | {where} | 7 passed | {no_figures}"
    assert found["tensorflow"] == f"| tensorflow | {where} | **no report** | {no_figures}"
    told = "**6 of 10 tests failed** | 51,234 on 1, 60,000 on 2 | **failed** on 2 |"
    assert found["jax"] == f"| jax | {where} | {told}"
    unusable = "it can use none of 2 x NVIDIA A100 with driver 580.95.05"
    assert found["mxnet"] == f"| mxnet | {unusable} | not run | not run | not run | not run |"


def test_a_check_that_failed_is_told(left: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run(left, "jax", 2, Rounds(), "gpu")
    edit(path, machine=read_record(path).machine | CARDS)
    (left / BOTH[1].folder / "tensorflow-scratch-1dev.json").unlink()
    write_verdict(left, verdict := judged(left))
    failed = [each.framework for each in verdict.comparisons[1].checks if not each.passed]
    assert main([str(left)]) == 0
    found = rows(capsys)
    assert f"| **{failed.count('jax')} of " in found["jax"]
    assert "| 2 of 2 x NVIDIA A100" in found["tensorflow"]
    assert f"| **{failed.count('tensorflow')} of " in found["tensorflow"]


def test_where_every_run_failed_the_benchmark_is_told_all_the_same(
    left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (left / "gpu").rglob("*dev.json"):
        path.unlink()
    bench(left, ("jax", "scratch", 2, "ours", 60000.0), ("jax", "scratch", 1, "ours", 51234.5))
    write_verdict(left, verdict := judged(left))
    assert main([str(left), "--write"]) == 0
    found = rows(capsys)
    assert "| none of 2 x NVIDIA A100, driver 580.95.05, " in found["jax"]
    failed = sum(each.framework == "jax" for each in verdict.comparisons[1].checks)
    assert f"| **{failed} of {failed} checks failed** | **no report** | " in found["jax"]
    assert "| 51,234 on 1, 60,000 on 2 | **failed** on 2 |" in found["jax"]
    assert kept().table() == "\n".join(found.values())


def test_it_is_written_beside_what_was_known(
    left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(left), "--write"]) == 0
    table = capsys.readouterr().out.strip()
    for page in PAGES:
        text = (left / page).read_text(encoding="utf-8")
        assert text == f"before\n{BEGIN}\n\n{table}\n\n{END}\nafter\n"
    # Somebody else has an older card, for which there is MXNet's build.
    known = json.loads((left / KEPT).read_text())
    known["frameworks"]["mxnet"] |= {
        "gpus": "1 x Tesla T4",
        "devices": [1],
        "checks": {"passed": 9, "failed": 0},
    }
    known["frameworks"]["jax"]["driver"] = "1.2"
    (left / KEPT).write_text(json.dumps(known))
    assert main([str(left), "--write"]) == 0
    again = (left / PAGES[0]).read_text(encoding="utf-8")
    assert "| mxnet | 1 of 1 x Tesla T4" in again
    assert "1.2" not in again
    assert main(["--write"]) == 0
    assert (left / PAGES[0]).read_text(encoding="utf-8") == again


def test_a_name_from_elsewhere_is_text_alone(
    left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (left / "gpu").rglob("*dev.json"):
        edit(path, machine=read_record(path).machine | {"gpus": "2 x <b>|`A`\n# [x](y)"})
    write_verdict(left, judged(left))
    assert main([str(left)]) == 0
    assert "| jax | 1 and 2 of 2 x bA x(y), driver" in rows(capsys)["jax"]
