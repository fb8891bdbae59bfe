"""The command that tells what a plan takes."""

from dataclasses import fields
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pytest

from common.base.errors import RequestError
from common.chapters.strategies import StrategiesOptions
from common.parallel.strategies import OF_ANY_NET
from common.plan import main
from common.scaling.scenario import Scenario

PAGE = Path(__file__).parents[2] / "docs/splitting.md"


def rows(said: str) -> list[list[str]]:
    lines = [line for line in said.splitlines() if line.startswith("| ")]
    return [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_all_ways_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--devices=3", "--examples=31", "--precision=float64"])
    found = rows(capsys.readouterr().out)
    assert [row[0] for row in found] == OF_ANY_NET
    for name, *cells in found:
        usage = StrategiesOptions(name, microbatches=1).usage(3, 31, 8)
        sent = usage.all_sent()
        numbers = max(usage.kept()), max(sent), sum(sent), sum(usage.messages)
        assert cells == [str(number) for number in numbers]


def test_the_page_has_what_plans_predict() -> None:
    table = rows(PAGE.read_text("utf-8"))[: len(OF_ANY_NET)]
    assert [row[0] for row in table] == OF_ANY_NET
    for strategy, *sizes in table:
        usage = StrategiesOptions(strategy, depth=8).usage(4, 256, 4)
        sent = usage.all_sent()
        assert [*map(int, sizes)] == [sum(sent), max(sent), max(usage.kept())]


def test_plain_sgd_keeps_no_state() -> None:
    assert not any(Scenario(optimizer="sgd").usage().peak["momentum"])


def test_a_step_is_told_by_device_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.svg"
    flags = ["--strategy=pipeline", "--devices=4", "--microbatches=8", "--examples=30"]
    main([*flags, "--optimizer=adam", f"--out={path}"])
    said = capsys.readouterr().out
    usage = StrategiesOptions("pipeline", microbatches=8).usage(4, 30, 4)
    for device, row in enumerate(rows(said)):
        weights, gradients, momentum, activations = (each[device] for each in usage.peak.values())
        sizes = [weights, gradients, 2 * momentum, activations]
        sent = sum(each[device] for each in usage.sent.values())
        counts = [usage.messages[device], usage.live[device]]
        assert row == [str(each) for each in (device, *sizes, sum(sizes), sent, *counts)]
    # (p - 1) / (m + p - 1) of the whole, (p - 1) / m of the ideal time
    assert "1f1b: 33 units of time, 27.3% of it waiting, which is 37.5% of the ideal time" in said
    assert len(ElementTree.parse(path).findall(".//*[@class='pic-box']")) == 2 * 4 * 8


def test_a_mesh_is_shown_by_stage(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--net=transformer", "--tensor=2", "--pipeline=4", "--chunks=2", "--shards=8"]
    main([*flags, "--vocabulary=1000", "--card=a100", "--spread"])
    said = capsys.readouterr().out
    assert "tensor 2, pipeline 4, shards 8, replicas 1, zero 1, microbatches 8" in said
    assert [row[0] for row in rows(said)] == ["0", "1", "2", "3"]
    assert "a step takes " in said
    with pytest.raises(RequestError, match="--chunks need a multiple of 4 --microbatches"):
        main([*flags, "--microbatches=6"])
    for wrong in ("7B", "-7e9", "80GB"):
        with pytest.raises(SystemExit, match="2"):
            main(["--net=transformer", "--parameters", wrong])
        assert "as 7e9" in capsys.readouterr().err


REFUSED = """
| --out draws one --strategy: name it
--strategy=pipeline --devices=5 | the net can be cut into 4
--net=resnet18 --depth=50 | --depth means nothing for --net resnet18
--strategy=zero3 --schedule=1f1b | nothing for --strategy zero3
--memory=1e9 --card=a100 | --memory means nothing without --choose
--link=nvlink | --link means nothing without --card or --peak
--choose --peak=1e15 | --choose means nothing for --net lenet
--net=transformer --heads=7 --hidden=100 --strategy=tensor | 7 heads do not divide a hidden size
--choose --card=a100 --replicas=2 | nothing with --choose
--heads=4 | it is for transformer
--net=transformer --schedule=zb1 --recompute=full --strategy=pipeline | and without --recompute full
--net=transformer --shards=2 --strategy=tensor | with --shards, which
--net=transformer --tensor=2 --devices=2 | --devices means nothing
--net=transformer --exchange=ulysses --strategy=tensor | --exchange means nothing for
--net=transformer --strategy=context --pipeline=2 | --strategy means nothing with --pipeline
--net=transformer --strategy=expert | needs --experts
--experts=4 --strategy=tensor | --experts means nothing for --net lenet
--net=transformer --experts=1 --strategy=data | as many as --top-k
--net=transformer --experts=4 --strategy=zero3 | data or expert
--net=transformer --top-k=1 --strategy=tensor | --top-k means nothing without --experts
--devices=2 --replicas=4 --strategy=zero3 --net=transformer | take a multiple of 4 devices, not 2
--devices=65 | more than 64 devices need --choose, or a mesh
--net=transformer --parameters=6.7e9 --hidden=4096 --strategy=tensor | nothing with --hidden
"""
"""Flags, and what is said of them."""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_cannot_be_planned_is_refused_and_nothing_drawn(tmp_path: Path, line: str) -> None:
    path = tmp_path / "plan.svg"
    flags, _, said = line.partition("| ")
    with pytest.raises(RequestError, match=said):
        main([*flags.split(), f"--out={path}"])
    assert not path.exists()


def test_every_flag_has_its_meaning_and_its_default_in_its_help() -> None:
    for flag in fields(Scenario):
        meaning, _, default = flag.metadata["text"].rpartition(" (")
        assert flag.default is False or (len(meaning) > 8 and default.endswith(")"))


def test_seconds_need_a_peak_and_are_finite(capsys: pytest.CaptureFixture[str]) -> None:
    for peak, link in (("1e-30", "1e30,1e-30"), ("1e30", "1e-30,1e30")):
        main([f"--peak={peak}", f"--link={link}", "--net=resnet18"])
        said = capsys.readouterr().out
        assert "| messages | seconds |" in said
        assert all(0 < float(row[-1]) < inf for row in rows(said))
    for wrong in ("1e-320,1", "1,1e-320", "1e308,1", "1,1e308"):
        with pytest.raises(RequestError, match=f"'{wrong}' is no link"):
            main(["--card=a100", f"--link={wrong}"])
    for flag in ("--peak=1e-320", "--peak-share=1e-320", "--memory=1e308"):
        with pytest.raises(SystemExit, match="2"):
            main(["--card=a100", flag])


def test_a_picture_is_an_svg_and_the_net_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RequestError, match=r"name it FILE\.svg"):
        main(["--strategy=tensor", "--out", str(tmp_path / "plan.png")])
    main(["--net=resnet18", "--width=8"])
    main(["--net=transformer", "--layers=2", "--strategy=data"])
    said = capsys.readouterr().out
    assert said.startswith("resnet18 width 8, devices: 4; ")
    assert "\ntransformer parameters 100,000,000 layers 2 hidden 2,042 heads 16 sequence" in said
    main(["--net=transformer", "--layers=32", "--hidden=4096"])
    said = capsys.readouterr().out  # 12 h^2 + 13 h a block; 4 % more, 6.7e9, are another net
    assert said.startswith("transformer parameters 6,440,000,000 layers 32 hidden 4,096 heads 32 ")
