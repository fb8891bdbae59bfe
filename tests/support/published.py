"""Published runs: how they were split, their seconds, and the bytes of a device.

`python -m tests.support.published` writes the table of docs/splitting.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from common.scaling.scenario import Scenario

PAGE: Final = Path(__file__).parents[2] / "docs/splitting.md"

NETS: Final = {
    "MPT-1B": (24, 2048, 16, 50_368, 2048),
    "MPT-3B": (32, 2560, 20, 50_368, 2048),
    "MPT-7B": (32, 4096, 32, 50_368, 2048),
    "MPT-13B": (40, 5120, 40, 50_368, 2048),
    "MPT-30B": (48, 7168, 56, 50_368, 2048),
    "MPT-70B": (80, 8192, 64, 50_368, 2048),
    "Llama 3 8B": (32, 4096, 32, 128_256, 8192, 14_336, 8),
    "Llama 3 70B": (80, 8192, 64, 128_256, 8192, 28_672, 8),
    "Llama 3 405B": (126, 16_384, 128, 128_256, 8192, 53_248, 8),
    "MT-NLG 530B": (105, 20_480, 128, 51_200, 2048),
    "BLOOM-176B": (70, 14_336, 112, 250_880, 2048),
    "OPT-175B": (96, 12_288, 96, 50_272, 2048),
    "GPT-NeoX-20B": (44, 6144, 64, 50_432, 2048),
}
"""Layers, hidden size, heads, words, tokens of a sequence; a gated MLP's width, heads of keys."""

CARDS: Final = {"A100": ("nvlink", 25e9), "H100": ("nvlink4", 50e9)}
"""A card's link in its node, and its share of the link between nodes unless others are known."""

FITTED: Final = "fitted"
WIDE: Final = "8 or more sequences at once: 57 % of the peak, with recomputation"
SOME: Final = "recomputes some products; with whole blocks, 41 and 27 GB"
BITS: Final = "gradients of 32 bits, and the framework's buffers"

RUNS: Final = (
    # llm-foundry: tokens a second and card, on (tensor, pipeline, shards, replicas) devices
    ("MPT-1B", "A100", (1, 1, 8, 1), 3, 4, 448, "none", (20_513, "tokens"), 0, FITTED),
    ("MPT-3B", "A100", (1, 1, 8, 1), 3, 2, 160, "none", (10_811, "tokens"), 0, FITTED),
    ("MPT-7B", "A100", (1, 1, 8, 1), 3, 2, 96, "none", (4641, "tokens"), 0, FITTED),
    ("MPT-13B", "A100", (1, 1, 8, 1), 3, 3, 48, "none", (2262, "tokens"), 0, FITTED),
    ("MPT-1B", "H100", (1, 1, 8, 1), 3, 1, 112, "none", (45_455, "tokens"), 0, FITTED),
    ("MPT-7B", "H100", (1, 1, 8, 1), 3, 1, 48, "none", (10_643, "tokens"), 0, FITTED),
    ("MPT-13B", "H100", (1, 1, 8, 1), 3, 1, 16, "none", (4792, "tokens"), 0, FITTED),
    ("MPT-3B", "H100", (1, 1, 64, 1), 3, 3, 1152, "none", (22_525, "tokens"), 0, ""),
    ("MPT-13B", "H100", (1, 1, 64, 1), 3, 1, 128, "none", (4800, "tokens"), 0, ""),
    ("MPT-30B", "A100", (1, 1, 8, 1), 3, 21, 504, "full", (916, "tokens"), 0, ""),
    ("MPT-30B", "H100", (1, 1, 32, 1), 3, 3, 1344, "full", (2308, "tokens"), 0, WIDE),
    ("MPT-70B", "A100", (1, 1, 64, 1), 3, 4, 2048, "full", (410, "tokens"), 0, ""),
    ("MPT-70B", "H100", (1, 1, 64, 1), 3, 4, 2048, "full", (1039, "tokens"), 0, WIDE),
    # torchtitan, `benchmarks/llama3_h100_202412_torchtitan.md` and `docs/performance.md`
    ("Llama 3 8B", "H100", (1, 1, 8, 1), 3, 1, 16, "none", (5762, "tokens"), 88.5, SOME),
    ("Llama 3 8B", "H100", (1, 1, 128, 1), 3, 1, 256, "none", (5605, "tokens"), 71.9, SOME),
    ("Llama 3 70B", "A100", (1, 1, 64, 1), 3, 1, 64, "full", (331, "tokens"), 0, ""),
    # Smith et al. (2022), section 2.4
    ("MT-NLG 530B", "A100", (8, 35, 1, 8), 0, 240, 1920, "full", (60.1, "seconds"), 0, ""),
    ("MT-NLG 530B", "A100", (8, 35, 1, 10), 0, 192, 1920, "full", (50.2, "seconds"), 0, ""),
    ("MT-NLG 530B", "A100", (8, 35, 1, 12), 0, 160, 1920, "full", (44.4, "seconds"), 0, ""),
    # Le Scao et al. (2022), bytes from the project's page; Zhang et al.; Black et al. (2022)
    ("BLOOM-176B", "A100", (4, 12, 8, 1), 1, 128, 2048, "full", (156, "TFLOPS", 50e9), 60, BITS),
    ("OPT-175B", "A100", (8, 1, 124, 1), 3, 1, 1024, "full", (147, "TFLOPS"), 0, ""),
    ("GPT-NeoX-20B", "A100", (2, 4, 12, 1), 1, 32, 1536, "full", (117, "TFLOPS", 100e9), 0, ""),
    # Grattafiori et al. (2024), table 4: it fits 80 GB
    ("Llama 3 405B", "H100", (8, 16, 64, 1), 1, 32, 2048, "none", (430, "TFLOPS"), 80, ""),
    ("Llama 3 405B", "H100", (8, 16, 128, 1), 1, 16, 2048, "none", (400, "TFLOPS"), 80, ""),
)
"""Net, card, mesh, ZeRO's stage, microbatches, sequences, what is recomputed; what is published.

That is tokens a second or (with recomputed ones) operations of a card, or a step's seconds, and
the bytes a second of a node's link; GB of a device, 0: none. Last, the reason for an error.
"""


class Compared(NamedTuple):
    name: str
    plan: Scenario
    seconds: tuple[float, float]
    gigabytes: tuple[float, float]
    note: str


def compared() -> Iterator[Compared]:
    """Each run's plan, and seconds and GB of it: predicted, published."""
    for net, card, mesh, zero, m, batch, recompute, (value, unit, *rest), gigabytes, note in RUNS:
        layers, hidden, heads, words, sequence, *gated = NETS[net]
        link, port = CARDS[card]
        how: dict[str, Any] = dict(zip(("gated", "kv_heads"), gated, strict=False))
        how |= dict(zip(("tensor", "pipeline", "shards", "replicas"), mesh, strict=True))
        how |= {"layers": layers, "hidden": hidden, "heads": heads, "vocabulary": words}
        how |= {"sequence": sequence, "examples": batch * sequence, "microbatches": m}
        how |= {"strategy": f"zero{zero}" if zero else "data", "recompute": recompute}
        how |= {"attention": "scores" if unit != "tokens" and not gated else "flash"}
        how |= {"chunks": 8 if net == "Llama 3 405B" else 1, "card": card.lower(), "link": link}
        how |= {"between": f"9.6e-6,{rest[0] if rest else 8 * port}"}
        plan = Scenario(net="transformer", precision="mixed", optimizer="adam", **how)
        devices = plan.degrees().devices()
        done = {"tokens": 1.0, "TFLOPS": sum(plan.network().operations()) / 1e12}
        published = value if unit == "seconds" else plan.examples * done[unit] / value / devices
        kept = max(plan.kept()) / 1e9, float(gigabytes)
        name = f"{net}, {devices:,} {card}"
        yield Compared(name, plan, (plan.seconds().step, published), kept, note)


def table() -> str:
    lines = ["| run | seconds | published | error | GB | published | error | |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for name, _, (step, seconds), (kept, gigabytes), note in compared():
        cells = [name, f"{step:.3g}", f"{seconds:.3g}", f"{step / seconds - 1:+.0%}", f"{kept:.0f}"]
        cells += [f"{gigabytes:.0f}", f"{kept / gigabytes - 1:+.0%}"] if gigabytes else ["", ""]
        lines.append(f"| {' | '.join([*cells, note])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    written = re.sub(r"\| run \| seconds(.*\n)*?(?=\n)", table(), PAGE.read_text("utf-8"))
    PAGE.write_text(written, "utf-8")
