"""The command line of every chapter. Only the standard library, so that `--help` is instant."""

import argparse
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from common.base.errors import RequestError
from common.base.machine import cores
from common.chapters.chapters import LR_DECAYS, SPECS
from common.chapters.spec import ChapterSpec
from common.terminal.command import Parser
from common.terminal.values import (
    DEVICES,
    JOIN,
    STEPS,
    THREADS,
    above_zero,
    count,
    path,
    rank,
    seed,
)

SEED: Final = 8
"""Any would do. Of the seeds 0 to 8, it is the one that leaves the book's first plateau earliest,
at step 285 of 2,350: more of a run is spent on learning."""

EXAMPLES: Final = """\
examples:
  python -m frameworks.{framework}.{chapter} --preset quick
      learn something in under a minute
  python -m frameworks.{framework}.{chapter} --devices 4 --epochs 3
      four devices (virtual ones on a machine without a GPU)
  python -m frameworks.{framework}.{chapter} --dtype float64 --steps 20 --save-weights w.safetensors
      twenty exact steps; start another framework from the same point with --init-weights
  python -m frameworks.{framework}.{chapter} --checkpoint-dir kept --resume
      whatever ends it, the same command resumes it
"""


def parser(framework: str, chapter: str) -> Parser:
    """The parser of one chapter in one framework; the flags are the same for all."""
    spec = SPECS[chapter]
    made = Parser(
        prog=f"python -m frameworks.{framework}.{chapter}",
        description=f"{spec.title}, in {framework}.",
        epilog=EXAMPLES.format(framework=framework, chapter=chapter),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_devices(made)
    _add_training(made, spec)
    spec.options.add_flags(made.add_argument_group(f"the {chapter} chapter"), framework)
    _add_data(made)
    _add_files(made)
    _add_checkpoints(made)
    add_hosts(made)
    made.set_defaults(framework=framework, chapter=chapter)
    return made


@cache
def _defaults(framework: str, chapter: str) -> Mapping[str, Any]:
    return vars(parser(framework, chapter).parse_args([]))


def all_settings(framework: str, chapter: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of every flag, "_" for "-": those given, else the defaults; none is checked.

    Raises RequestError if there is no such flag.
    """
    defaults = _defaults(framework, chapter)
    if unknown := given.keys() - defaults.keys():
        raise RequestError(f"unrecognized arguments: {', '.join(sorted(unknown))}")
    return {**defaults, **given}


def as_flags(given: Mapping[str, Any]) -> list[str]:
    """Settings as the flags of a command line."""
    flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    return [flag if value is True else f"{flag}={value}" for flag, value in flags.items()]


def _add_devices(made: Parser) -> None:
    group = made.add_argument_group("devices")
    add = group.add_argument
    add(
        "--devices",
        type=count(DEVICES),
        metavar="N",
        help=f"number of devices, at most {DEVICES} (all GPUs, or 2 where there are none)",
    )
    add(
        "--device-kind",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="auto: GPUs if there are any, otherwise virtual CPU devices; "
        "gpu: an error if there are none (%(default)s)",
    )
    add(
        "--tf32",
        action="store_true",
        help="GPUs may multiply float32 numbers with 10 bits of the mantissa: faster, less exact",
    )
    add(
        "--deterministic",
        action="store_true",
        help="GPUs give the same bits each time, and are slower",
    )
    add(
        "--threads",
        type=count(THREADS),
        default=cores(),
        metavar="N",
        help=f"threads that all CPU devices share, at most {THREADS} (one a core: %(default)s)",
    )


def _add_training(made: Parser, spec: ChapterSpec) -> None:
    group = made.add_argument_group("training")
    add = group.add_argument
    presets = "; ".join(
        f"{name}:{''.join(f' {key} {value},' for key, value in p.options.items())}"
        f" batch {p.batch_size}, lr {p.lr}"
        f"{', falling to 0' if p.lr_decay == 'linear' else ''}"
        f"{' (both for each device)' if p.per_device else ''}, {p.epochs} epochs"
        f" of {p.train_examples or 'all'} examples"
        for name, p in spec.presets.items()
    )
    auto = "book" if spec.without_gpu == "book" else f"book on GPUs, else {spec.without_gpu}"
    add(
        "--preset",
        choices=("auto", *spec.presets),
        default="auto",
        help=f"{presets}; auto: {auto}. Other flags override it (%(default)s)",
    )
    add("--batch-size", type=count(), metavar="N", help="examples in the global minibatch")
    add("--lr", type=above_zero, metavar="X", help="learning rate")
    add(
        "--lr-decay",
        choices=LR_DECAYS,
        help="linear: the rate falls to 0 over the run (the preset's; with --steps: none)",
    )
    length = group.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=count(STEPS), metavar="N", help="passes over the data")
    length.add_argument(
        "--steps", type=count(STEPS), metavar="N", help="exactly N minibatches, in place of epochs"
    )
    add(
        "--seed",
        type=seed,
        default=SEED,
        metavar="N",
        help="seed of the initial weights and of the minibatch order (%(default)s)",
    )
    add("--dtype", choices=("float32", "float64"), default="float32", help="(%(default)s)")


def _add_data(made: Parser) -> None:
    add = made.add_argument_group("data").add_argument
    add(
        "--dataset",
        choices=("auto", "fashion-mnist", "synthetic"),
        default="auto",
        help="auto: fashion-mnist if it can be had, otherwise synthetic, with a note (%(default)s)",
    )
    add(
        "--data-dir",
        type=path,
        metavar="DIR",
        help="where the four files of Fashion-MNIST are "
        "(else $FASHION_MNIST_DIR, the user's cache, a download)",
    )
    add("--train-examples", type=count(), metavar="N", help="train on the first N")
    add("--test-examples", type=count(), metavar="N", help="test on the first N")


def _add_files(made: Parser) -> None:
    add = made.add_argument_group("files").add_argument
    add("--init-weights", type=path, metavar="FILE", help="start from these .safetensors")
    add("--save-weights", type=path, metavar="FILE", help="write the final weights there")
    add(
        "--out",
        type=path,
        default=Path("results"),
        metavar="DIR",
        help="where the record goes (%(default)s)",
    )
    add("--quiet", action="store_true", help="print the closing line alone")


def _add_checkpoints(made: Parser) -> None:
    add = made.add_argument_group("checkpoints").add_argument
    add(
        "--checkpoint-dir",
        type=path,
        metavar="DIR",
        help="keep the last two checkpoints of a run there",
    )
    add(
        "--checkpoint-every",
        type=count(STEPS),
        metavar="N",
        help="steps between two checkpoints (else one at the end of each epoch)",
    )
    add(
        "--resume",
        action="store_true",
        help="resume from the newest checkpoint there, or start from the beginning if there is "
        "none: the run ends with the same bits as one that was never stopped",
    )
    add(
        "--resume-from",
        type=path,
        metavar="FILE",
        help="resume from this checkpoint, of any framework and any number of devices: "
        "the numbers are the same except for rounding",
    )


def add_hosts(made: Parser) -> None:
    """Adds the flags by which a process finds the others of its run."""
    add = made.add_argument_group("several hosts").add_argument
    add(
        "--launcher",
        choices=("auto", "none"),
        default="auto",
        help="auto: train together with the other processes that a launcher has started; "
        "none: run alone (%(default)s)",
    )
    add(
        "--coordinator",
        metavar="HOST:PORT",
        help="by hand, the same on each host: where the first process listens",
    )
    add("--hosts", type=count(DEVICES), metavar="N", help="by hand: how many hosts there are")
    add("--host-rank", type=rank, metavar="R", help="by hand: the number of this host, from 0")
    add(
        "--join-timeout",
        type=count(JOIN),
        default=300,
        metavar="S",
        help="all processes have to start within so many seconds (%(default)s)",
    )
