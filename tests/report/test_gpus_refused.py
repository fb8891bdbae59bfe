"""A folder of `nox -s gpu` that does not agree with itself is refused, and nothing is written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from agreement import edit, reseal
from gpu_runs import (
    BOTH,
    bench,
    judged,
    made as made,
    what_is_left as what_is_left,
    with_gpu_runs as with_gpu_runs,
)

from common.gpus import KEPT, PAGES, main
from common.records.store import read_record
from common.report.text import write_verdict


def gone(folder: Path) -> str:
    (folder / BOTH[1].folder / "jax-scratch-2dev.json").unlink()
    return "jax-scratch-2dev.json cannot be read"


def of_cpus(folder: Path) -> str:
    name = "jax-scratch-2dev.json"
    path = folder / BOTH[1].folder / name
    path.write_bytes((folder / BOTH[0].folder / name).read_bytes())
    return f"{name} is not the record of its run on GPUs"


def changed(folder: Path) -> str:
    path = folder / BOTH[1].folder / "jax-scratch-2dev.json"
    path.write_text(path.read_text().replace("A100", "H100"))
    return "is not the record of its run on GPUs"


def of_another(folder: Path) -> str:
    place = folder / BOTH[1].folder
    (place / "jax-scratch-2dev.json").write_bytes(
        (place / "pytorch-scratch-2dev.json").read_bytes()
    )
    return "is not the record of its run on GPUs"


def later(folder: Path) -> str:
    path = folder / BOTH[1].folder / "jax-scratch-2dev.json"
    edit(path, started="2126-01-01T00:00:00+00:00")
    assert reseal(path)
    return "is of a run after the comparison"


def on_cpus_alone(folder: Path) -> str:
    verdict = judged(folder)
    verdict.comparisons = verdict.comparisons[:1]
    write_verdict(folder, verdict)
    return "compares no runs of scratch, gpu-float64"


def report(folder: Path) -> str:
    (folder / "jax-tests.xml").write_text("<html>")
    return "jax-tests.xml is no report of pytest"


def empty_report(folder: Path) -> str:
    (folder / "jax-tests.xml").write_text("<html/>")
    return "jax-tests.xml is no report of pytest: it has no testsuite"


def bench_of_others(folder: Path) -> str:
    bench(folder, ("jax", "scratch", 1, "ours", 51234.5))
    path = folder / "bench.json"
    path.write_text(path.read_text().replace("A100", "H100"))
    return "bench.json is of another machine than the records"


def two_machines(folder: Path) -> str:
    path = folder / BOTH[1].folder / "jax-scratch-2dev.json"
    edit(path, machine=read_record(path).machine | {"gpus": "1 x Tesla T4"})
    return "the records are of several machines"


SPOILT = [
    gone,
    of_cpus,
    of_another,
    changed,
    later,
    on_cpus_alone,
    report,
    empty_report,
    bench_of_others,
    two_machines,
]


@pytest.mark.parametrize("spoil", SPOILT)
def test_what_cannot_be_is_refused(
    spoil: Callable[[Path], str], left: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = spoil(left)
    before = [(left / page).read_text() for page in PAGES]
    with pytest.raises(Exception, match=expected):
        main([str(left), "--write"])
    assert [(left / page).read_text() for page in PAGES] == before
    assert not (left / KEPT).exists()


def test_a_record_that_was_no_part_of_the_comparison_is_passed_over(left: Path) -> None:
    (left / BOTH[1].folder / "jax-scratch-3dev.json").write_text("no record")
    assert main([str(left)]) == 0


def test_a_folder_without_a_comparison(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"parity.json: `nox -s gpu` leaves one"):
        main([str(tmp_path)])
