"""The alpha-beta model: its formulas, its predictions, its clusters, and its command line."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cluster import walked
from hypothesis import given
from hypothesis import strategies as st

from common.interface import Array
from common.presets import ALLREDUCES
from common.scaling import __main__ as command
from common.scaling import measure as measuring
from common.scaling.formulas import FORMULAS, ITEM, Link, seconds, winners
from common.scaling.formulas import Path as Busiest
from common.scaling.laboratory import COUNTS, Laboratory, Trial, grid, trials
from common.scaling.predict import fit, predict
from common.scaling.results import SHORT, Costs, Line, Lines, Measured, Probe, Scaling
from common.scaling.simulate import as_measured, simulate
from common.scaling.steps import BUCKET, Net, Timing, nets, timing
from common.schedules import SCHEDULES, Schedule, carry_out
from common.splitting import shard_bounds

ROOT = Path(__file__).parent.parent
HEAVY = {"numpy", "pydantic", "rich", "matplotlib", "torch", "tensorflow", "jax", "mxnet"}
FLAGS = """--framework --measured --threads --sizes --latency --bandwidth --addition --rate --out
    --quiet --help"""
NETWORK = Link(1e-5, 1 / 12.5e9, 1 / 500e9)

positive = st.floats(1e-9, 1e3)


@given(st.sampled_from(sorted(FORMULAS)), st.integers(1, 40), st.integers(0, 300), *[positive] * 3)
def test_a_formula_gives_what_walking_its_schedule_does(
    name: str, k: int, entries: int, latency: float, per_entry: float, per_entry_added: float
) -> None:
    link = Link(latency, per_entry / ITEM, per_entry_added / ITEM)
    expected = walked(SCHEDULES[name](k), entries, latency, per_entry, per_entry_added)
    assert seconds(name, k, entries, link) == pytest.approx(expected, rel=1e-9)


def test_every_schedule_has_a_formula() -> None:
    assert FORMULAS.keys() == SCHEDULES.keys()


def test_formulas_are_those_of_the_textbooks() -> None:
    n, k = 4096 * 1000, 4096
    share = (k - 1) * n // k
    assert FORMULAS["star"](k, n) == Busiest(2 * (k - 1), 2 * (k - 1) * n, (k - 1) * n)
    assert FORMULAS["ring"](k, n) == Busiest(2 * (k - 1), 2 * share, share)
    assert FORMULAS["tree"](k, n) == Busiest(24, 24 * n, 12 * n)
    assert FORMULAS["halving"](k, n) == Busiest(24, 2 * share, share)


@pytest.mark.parametrize(
    ("k", "entries", "expected"),
    [
        (1024, 1, {"tree", "halving"}),
        (1000, 1, {"tree", "halving"}),
        (64, 10_000, {"halving"}),
        (16, 10**9, {"halving", "ring", "sharded"}),
        (24, 10**9, {"ring", "sharded"}),
        (2, 1, set(FORMULAS)),
        (2, 10**9, {"halving", "ring", "sharded"}),
    ],
)
def test_who_wins_at_the_extremes(k: int, entries: int, expected: set[str]) -> None:
    times = {name: seconds(name, k, entries, NETWORK) for name in FORMULAS}
    assert set(winners(times)) == expected


@given(positive, positive, st.lists(positive, min_size=1, max_size=200))
def test_overlap_helps_but_does_no_magic(
    forward: float, backward: float, allreduces: list[float]
) -> None:
    step = Timing(forward, backward, allreduces)
    least = max(forward + backward + allreduces[-1], forward + sum(allreduces))
    assert step.overlapped() <= step.apart() * (1 + 1e-12)
    assert step.overlapped() >= least * (1 - 1e-12)


def test_a_pipeline_by_hand() -> None:
    # Buckets are ready at 3, 5 and 7 seconds, and each takes as long as it says.
    assert Timing(1, 6, [1, 1, 1]).overlapped() == 8
    assert Timing(1, 6, [3, 3, 1]).overlapped() == 10
    assert Timing(1, 6, [3, 3, 1]).apart() == 14


def test_the_nets() -> None:
    lenet, resnet, billion = nets()
    assert (lenet.parameters, resnet.parameters, billion.parameters) == (129_068, 11_175_818, 10**9)
    assert [len(net.buckets()) for net in nets()] == [1, 2, 153]
    for net in nets():
        assert sum(net.buckets()) == net.parameters
        assert max(net.buckets()) * ITEM <= BUCKET
    assert billion.forward + billion.backward == 6 * 2048 * 10**9
    first = 2 * 26 * 26 * 20 * 9
    others = 2 * (9 * 9 * 50 * 20 * 25 + 800 * 128 + 128 * 10)
    assert (lenet.forward, lenet.backward) == (256 * (first + others), 256 * (first + 2 * others))


def test_a_step_computes_at_the_rate_of_its_device() -> None:
    net = Net("two buckets", "an example", BUCKET // 2, forward=10, backward=30)
    step = timing(net, "tree", 2, Link(1, 0, 0), rate=5)
    assert (step.forward, step.backward, step.allreduces) == (2, 6, [2, 2])


def line(fixed: float, per_entry: float) -> Lines:
    """The same for short and for long vectors."""
    same = Line(fixed=fixed, per_entry=per_entry)
    return Lines(short=same, long=same)


def costs(message: Lines, addition: Lines, *cut: Lines) -> Costs:
    one, two, three, four = cut or [line(0, 0)] * 4
    return Costs(message=message, addition=addition, cut=(one, two, three, four))


HERE = costs(
    Lines(short=Line(fixed=1e-5, per_entry=1e-9), long=Line(fixed=3e-5, per_entry=4e-10)),
    line(4e-6, 6e-10),
    *(line(c * 1e-4, 5e-10 * (c > 1)) for c in (1, 2, 3, 4)),
)


def test_predictions_by_hand() -> None:
    known = costs(line(1, 0.1), line(10, 1), *(line(100 * cut, 0) for cut in (1, 2, 3, 4)))
    # Four messages of 6 numbers, of which two are added.
    assert predict(known, SCHEDULES["star"](3), 6) == pytest.approx(4 * 1.6 + 2 * 16 + 3 * 100)
    # Every device sends 2 + 1 + 1 + 2 chunks of 2 numbers; half of them are added.
    assert predict(known, SCHEDULES["halving"](4), 8) == pytest.approx(24 * 1.2 + 12 * 12 + 4 * 400)


def by_schedule(schedule: Schedule, vectors: Sequence[Array]) -> list[Array]:
    bounds = shard_bounds(len(vectors[0]), schedule.chunks)
    held = [[vector[a:b] for a, b in bounds] for vector in vectors]
    carry_out(schedule, held, lambda chunk, _: chunk.copy())
    return [np.concatenate(chunks) for chunks in held]


@pytest.mark.parametrize("k", [1, *COUNTS])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_prediction_counts_every_message_that_is_carried_out(name: str, k: int) -> None:
    schedule, sizes = SCHEDULES[name](k), []

    def receive(chunk: Array, _: int) -> Array:
        sizes.append(len(chunk))
        return chunk.copy()

    held = [[np.ones(b - a) for a, b in shard_bounds(61, schedule.chunks)] for _ in range(k)]
    carry_out(schedule, held, receive)
    assert predict(costs(line(1, 0), line(0, 0)), schedule, 61) == len(sizes)
    assert predict(costs(line(0, 1), line(0, 0)), schedule, 61) == sum(sizes)


def probes(known: Costs, sizes: Sequence[int], error: float = 0) -> list[Probe]:
    """What the clock would show, but for a relative error."""
    random, made = np.random.RandomState(0), []
    for entries in grid(sizes):
        for trial in trials(entries):
            each = known.message(entries) + trial.adds * known.addition(entries)
            taken = 2 * known.cut[trial.chunks - 1](entries) + trial.messages * each
            taken *= 1 + error * random.uniform(-1, 1)
            made.append(Probe(**trial._asdict(), seconds=taken))
    return made


def test_the_constants_are_found_again() -> None:
    found = fit(probes(HERE, [129_068, 11_175_818]))
    pairs = [(found.message, HERE.message), (found.addition, HERE.addition)]
    for got, wanted in [*pairs, *zip(found.cut, HERE.cut, strict=True)]:
        for a, b in ((got.short, wanted.short), (got.long, wanted.long)):
            assert a.fixed == pytest.approx(b.fixed, rel=1e-6)
            assert a.per_entry == pytest.approx(b.per_entry, rel=1e-6, abs=1e-15)


def test_short_vectors_have_constants_of_their_own() -> None:
    assert HERE.message(SHORT) == pytest.approx(1e-5 + SHORT * 1e-9)
    assert HERE.message(SHORT + 1) == pytest.approx(3e-5 + (SHORT + 1) * 4e-10)
    only = fit(probes(HERE, [1000])).message
    assert only.long == only.short


def test_no_constant_is_negative_whatever_the_clock_shows() -> None:
    free = costs(line(1e-5, 0), line(0, 1e-9), *HERE.cut)
    for error in (0.01, 0.1, 0.5):
        found = fit(probes(free, [1000], error))
        for both in (found.message, found.addition, *found.cut):
            for each in (both.short, both.long):
                assert each.fixed >= 0
                assert each.per_entry >= 0


def test_trials_are_no_allreduce() -> None:
    for trial in trials(100):
        moved = [len(one) for one in trial.schedule().rounds]
        assert moved == [1] * trial.messages
    for adds in (False, True):  # it comes back changed by nothing, or keeps growing
        first, second = by_schedule(Trial(1, 1, 4, adds).schedule(), [np.ones(1), 2 * np.ones(1)])
        assert (first[0], second[0]) == ((11, 7) if adds else (1, 1))


@pytest.fixture
def laboratory(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """Devices of NumPy, under JAX's name."""

    def split_batch(X: Array, y: Array, devices: Sequence[str]) -> tuple[list[Array], list[Array]]:
        return np.split(X, len(devices)), np.split(y, len(devices))

    backend = SimpleNamespace(split_batch=split_batch, synchronize=lambda _: None)
    collectives = SimpleNamespace(
        by_schedule=by_schedule, native=lambda vectors: [sum(vectors)] * len(vectors)
    )
    made = Laboratory(backend, collectives, ["numpy"] * max(COUNTS))
    monkeypatch.setattr(measuring, "laboratory", lambda *_: made)
    return made


def test_everything_is_measured_and_all_but_native_predicted(laboratory: Laboratory) -> None:
    measured = measuring.measure("jax", 1, [20, 50])
    found = {(each.entries, each.devices, each.algorithm): each for each in measured.compared}
    assert found.keys() == {(n, k, name) for n in (20, 50) for k in COUNTS for name in ALLREDUCES}
    for (_, _, name), each in found.items():
        assert each.measured > 0
        assert (each.predicted is None) == (name == "native")
    assert {probe.entries for probe in measured.probes} == {1, 5, 6, 10, 12, 16, 20, 25, 50}


@pytest.fixture
def scaling() -> Scaling:
    found = probes(HERE, [1000])
    compared = [
        {"entries": 1000, "devices": k, "algorithm": name, "measured": 0.002, "predicted": said}
        for k in COUNTS
        for name, said in (("star", 0.001), ("native", None))
    ]
    measured = Measured.model_validate(
        {
            "framework": "jax",
            "threads": 1,
            "created": "2026-01-01T00:00:00+00:00",
            "machine": {"processor": "a processor", "cores": 2},
            "versions": {"jax": "1"},
            "probes": [each.model_dump() for each in found],
            "costs": HERE.model_dump(),
            "compared": compared,
            "product_rate": 2e10,
            "copy_rate": 5e9,
        }
    )
    cluster = as_measured(measured)
    return Scaling(measured=measured, constants=cluster, simulated=simulate(cluster))


@pytest.fixture
def file(scaling: Scaling, tmp_path: Path) -> Path:
    path = tmp_path / "scaling.json"
    path.write_text(scaling.model_dump_json(by_alias=True))
    return path


def test_a_cluster_is_what_was_measured(scaling: Scaling) -> None:
    cluster = scaling.constants
    assert cluster.latency.value == 1e-5
    assert cluster.bandwidth.value == pytest.approx(1e10)
    assert cluster.addition.value == pytest.approx(ITEM / 6e-10)
    assert cluster.rate.value == 1e10
    found = {(each.net, each.devices, each.algorithm): each for each in scaling.simulated}
    assert len(found) == 3 * 12 * 5
    for (name, k, algorithm), each in found.items():
        (net,) = (net for net in nets() if net.name == name)
        sent = sum(seconds(algorithm, k, entries, cluster.link()) for entries in net.buckets())
        assert each.allreduce == pytest.approx(sent)
        assert each.apart == pytest.approx((net.forward + net.backward) / 1e10 + sent)
        assert each.overlapped <= each.apart


def test_vectors_that_nobody_copied_do_not_make_a_link_infinite(scaling: Scaling) -> None:
    known = costs(line(1e-5, 0), HERE.addition, *HERE.cut)
    cluster = as_measured(scaling.measured.model_copy(update={"costs": known}))
    assert cluster.bandwidth.value == scaling.measured.copy_rate
    assert "NumPy's copy" in cluster.bandwidth.source


def test_what_is_measured_given_and_simulated_is_told_apart(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = file.parent / "out"
    assert command.main([f"--measured={file}", f"--out={out}", "--latency=5"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("MEASURED") < printed.index("ratio") < printed.index("SIMULATED")
    assert re.search(r"star +│ +2\.00 ms │ +1\.00 ms │ +0\.50", printed)
    assert re.search(r"native +│ +2\.00 ms │ +– │ +–", printed)
    assert re.search(r"latency of a message +│ +5\.00 µs │ given", printed)
    assert re.search(r"bandwidth of a link +│ +10\.0 GB/s │ measured", printed)
    assert len(re.findall(r"^│ 4,096 +│ +(?:no|yes) ", printed, re.M)) == 6
    again = out / "scaling.json"
    assert command.main([f"--measured={again}", f"--out={out}", "--quiet", "--rate=7"]) == 0
    kept = Scaling.model_validate_json(again.read_text()).constants
    assert (kept.latency.value, kept.rate.value) == pytest.approx((5e-6, 7e9))
    assert (kept.latency.source, kept.rate.source) == ("given", "given")
    assert kept.bandwidth.source == "measured"


def test_without_matplotlib_it_says_how_to_draw(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main([f"--measured={file}", f"--out={file.parent}", "--quiet"]) == 0
    written, hint = capsys.readouterr().out.splitlines()
    assert written == f"written: {file}"
    assert f"python -m common.scaling --quiet --measured {file}" in hint
    assert not list(file.parent.glob("*.svg"))


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
    "--measured scaling.json --sizes 5": "leave --framework and --sizes out",
    "--measured scaling.json --framework jax": "leave --framework and --sizes out",
    "--measured scaling.json --out scaling.json/x": "cannot write to scaling.json/x",
    "--late 5": "unrecognized arguments: --late 5",
}


@pytest.mark.parametrize(("flags", "complaint"), FLAWS.items(), ids=FLAWS.keys())
def test_a_bad_request_is_refused_in_one_line(refused: Refused, flags: str, complaint: str) -> None:
    assert re.search(complaint, refused(*flags.split()))


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
    assert "scaling.json is not a scaling.json of schema 1" in line
    assert complaint in line


def test_the_first_framework_that_is_installed_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for library, framework in (("torch", "pytorch"), ("jax", "jax"), ("mxnet", "mxnet")):
        there = {library, "mxnet"}
        monkeypatch.setattr(command, "find_spec", lambda name, there=there: name in there or None)
        assert command.installed() == framework


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command_line = [sys.executable, *arguments]
    return subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_names_every_flag_and_loads_nothing_heavy() -> None:
    done = python("-X", "importtime", "-m", "common.scaling", "--help")
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "argparse" in loaded
    assert not loaded & HEAVY
    assert set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", done.stdout, re.M)) == set(FLAGS.split())


def test_it_measures_the_framework_under_test(framework: str, tmp_path: Path) -> None:
    done = python(
        *f"-m common.scaling --framework={framework} --sizes 100000 --out={tmp_path}".split()
    )
    assert done.returncode == 0, done.stderr
    assert "MEASURED" in done.stdout
    found = Scaling.model_validate_json((tmp_path / "scaling.json").read_text())
    assert found.measured.framework == framework
    on_two = [each for each in found.measured.compared if each.devices == 2]
    assert {each.algorithm for each in on_two} == ALLREDUCES.keys()
    # The bound is a factor of 2 where nothing else runs; tests run two at a time.
    ratios = [ratio for each in on_two if (ratio := each.ratio())]
    assert 1 / 3 < float(np.median(ratios)) < 3
