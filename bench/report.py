"""The benchmark for people: what was measured, and how it stands to the targets."""

from contextlib import suppress

from rich.console import Console

from bench.results import Bench
from bench.targets import targets
from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import SPECS
from common.report.speed import Samples
from common.terminal import tables

MIB = 2**20


def target_rows(bench: Bench) -> list[list[str]]:
    """A row for each target that was measured: what, the bound, and every framework's figure."""
    found = [
        [target.what, target.bound(), *(target.cell(bench, name) for name in FRAMEWORKS)]
        for target in targets(bench)
    ]
    return [row for row in found if any(row[2:])]


def figure_rows(bench: Bench) -> list[list[str]]:
    """A row for each contender: medians over the rounds."""
    return [figures(each) for each in bench.samples if each.chapter]


def figures(samples: Samples) -> list[str]:
    """What was measured of one contender."""
    return [
        SPECS[samples.chapter].net,
        samples.framework,
        samples.contender,
        samples.on(),
        f"{samples.median('images_per_second'):,.0f}",
        format(samples.median("step") * 1000, ",.2f" if samples.kind == "gpu" else ",.0f"),
        f"{samples.median('epoch'):,.1f}",
        f"{samples.median('first_step'):.1f}",
        f"{samples.median('peak_memory') / MIB:,.0f}",
    ]


TARGET_HEADINGS = ["ratio or share", "target", *FRAMEWORKS]
FIGURE_HEADINGS = [
    "net",
    "framework",
    "loop",
    "devices",
    "images/s",
    "ms/step",
    "s/epoch",
    "s to first step",
    "MiB",
]


def provenance(bench: Bench) -> str:
    """Where and when, in a line."""
    machine = bench.machine
    rest = f"; all {company}" if (company := bench.company()) else ""
    if bench.on_gpus():
        rest += f"; float32 without TF32; {machine['gpus']}, driver {machine['driver']}; "
        rest += "MiB are of the host's memory"
    with suppress(LookupError):
        rest += f"; matrix product {bench.machine_rate() / 1e9:,.0f} GFLOP/s"
    if bench.failed:
        rest += f"; **failed**: {', '.join(bench.failed)}"
    return (
        f"{machine['processor']}, {machine['cores']} cores, {bench.created}, "
        f"medians of {bench.rounds} rounds on {bench.data.name}{rest}"
    )


def markdown(bench: Bench) -> str:
    """Both tables as a Markdown page."""
    parts = [(TARGET_HEADINGS, target_rows(bench)), (FIGURE_HEADINGS, figure_rows(bench))]
    made = [
        "\n".join(tables.markdown(headings, rows, range(len(headings)))) for headings, rows in parts
    ]
    return "\n\n".join([f"# Benchmark {bench.company()}".rstrip(), provenance(bench), *made]) + "\n"


def print_report(bench: Bench) -> None:
    """Prints both tables."""
    console = Console(highlight=False)
    for headings, rows in (
        (FIGURE_HEADINGS, figure_rows(bench)),
        (TARGET_HEADINGS, target_rows(bench)),
    ):
        made = tables.table(headings, left=range(len(headings)))
        for row in rows:
            made.add_row(*row)
        console.print(made)
    console.print(provenance(bench), soft_wrap=True)
