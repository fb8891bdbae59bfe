"""The command line of every chapter. Only the standard library, so that `--help` is instant."""

from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from common.base.errors import RequestError
from common.base.machine import cores
from common.chapters.spec import ChapterSpec, spec
from common.terminal.command import DEVICES, STEPS, THREADS, Parser, above_zero, count, path, seed

EXAMPLES: Final = """\
examples:
  python -m frameworks.{framework}.{chapter} --preset quick
      learn something in under a minute
  python -m frameworks.{framework}.{chapter} --devices 4 --epochs 3
      four devices (simulated on the CPU if there is no GPU)
  python -m frameworks.{framework}.{chapter} --dtype float64 --steps 20 --save-weights w.safetensors
      twenty exact steps; start another framework from the same point with --init-weights
  python -m frameworks.{framework}.{chapter} --checkpoint-dir kept --resume
      whatever ends it, the same command resumes it
"""


@cache
def parser(framework: str, chapter: str) -> Parser:
    about = spec(chapter)
    command = Parser(
        f"python -m frameworks.{framework}.{chapter}",
        f"{about.title}, in {framework}.",
        epilog=EXAMPLES.format(framework=framework, chapter=chapter),
    )
    _add_devices(command.add_argument_group("devices"))
    _add_training(command.add_argument_group("training"), about)
    about.options.add_flags(command.add_argument_group(f"the {chapter} chapter"), framework)
    _add_files(command)
    command.set_defaults(framework=framework, chapter=chapter)
    return command


def all_settings(framework: str, chapter: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of every flag, with defaults. Raises RequestError for an unknown one."""
    defaults = vars(parser(framework, chapter).parse_args([]))
    if unknown := settings.keys() - defaults.keys():
        raise RequestError(f"unrecognized arguments: {', '.join(sorted(unknown))}")
    return {**defaults, **settings}


def as_flags(settings: Mapping[str, Any]) -> list[str]:
    flags = {f"--{name.replace('_', '-')}": value for name, value in settings.items()}
    return [flag if value is True else f"{flag}={value}" for flag, value in flags.items()]


def _add_devices(group: ArgumentGroup) -> None:
    add = group.add_argument
    text = f"number of devices, at most {DEVICES} (all GPUs, or 2 where there are none); of all "
    text += "processes, if a launcher has started several (one for each)"
    add("--devices", type=count(DEVICES), metavar="N", help=text)
    text = "auto: GPUs if there are any, otherwise simulated CPU devices; "
    text += "gpu: an error if there are none (%(default)s)"
    add("--device-kind", choices=("auto", "cpu", "gpu"), default="auto", help=text)
    text = "GPUs may multiply float32 numbers with 10 bits of the mantissa: faster, less exact"
    add("--tf32", action="store_true", help=text)
    text = "GPUs give the same bits each time, and are slower"
    add("--deterministic", action="store_true", help=text)
    text = f"threads that all CPU devices share, at most {THREADS} (one a core: %(default)s)"
    add("--threads", type=count(THREADS), metavar="N", help=text, default=cores())


def _add_training(group: ArgumentGroup, spec: ChapterSpec) -> None:
    add = group.add_argument
    presets = "; ".join(_described(spec, name) for name in spec.presets)
    auto = "book" if spec.without_gpu == "book" else f"book on GPUs, else {spec.without_gpu}"
    text = f"{presets}; auto: {auto}. Other flags override it (%(default)s)"
    add("--preset", choices=("auto", *spec.presets), default="auto", help=text)
    add("--batch-size", type=count(), metavar="N", help="examples in the global minibatch")
    add("--lr", type=above_zero, metavar="X", help="learning rate")
    text = "linear: the rate falls to 0 over the run (the preset's; with --steps: none)"
    add("--lr-decay", choices=("none", "linear"), help=text)
    length = group.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=count(STEPS), metavar="N", help="passes over the data")
    text = "exactly N minibatches, in place of epochs"
    length.add_argument("--steps", type=count(STEPS), metavar="N", help=text)
    text = "seed of the initial weights and of the minibatch order (%(default)s)"
    # Of the seeds 0 to 8, the one that leaves the book's first plateau earliest, at step 285.
    add("--seed", type=seed, metavar="N", help=text, default=8)
    numbers = ("float32", "float64")
    add("--dtype", choices=numbers, default="float32", help="(%(default)s)")


def _described(spec: ChapterSpec, name: str) -> str:
    preset = spec.presets[name]
    options = "".join(f" {key} {value}," for key, value in spec.given(preset).items())
    falls = ", falling to 0" if preset.get("lr_decay") == "linear" else ""
    each = " (both for each device)" if name in spec.per_device else ""
    return (
        f"{name}:{options} batch {preset['batch_size']}, lr {preset['lr']}{falls}{each}, "
        f"{preset['epochs']} epochs of {preset.get('train_examples', 'all')} examples"
    )


def _add_files(command: Parser) -> None:
    add = command.add_argument_group("data").add_argument
    text = "auto: fashion-mnist if it can be had, otherwise synthetic, with a note (%(default)s)"
    add("--dataset", choices=("auto", "fashion-mnist", "synthetic"), default="auto", help=text)
    elsewhere = "(else $FASHION_MNIST_DIR, the user's cache, a download)"
    text = f"where the four files of Fashion-MNIST are {elsewhere}"
    add("--data-dir", type=path, metavar="DIR", help=text)
    add("--train-examples", type=count(), metavar="N", help="train on the first N")
    add("--test-examples", type=count(), metavar="N", help="test on the first N")
    add = command.add_argument_group("files").add_argument
    add("--init-weights", type=path, metavar="FILE", help="start from these .safetensors")
    add("--save-weights", type=path, metavar="FILE", help="write the final weights there")
    text = "where the record goes (%(default)s)"
    add("--out", type=path, metavar="DIR", help=text, default=Path("results"))
    add("--quiet", action="store_true", help="print only the closing line")
    add = command.add_argument_group("checkpoints").add_argument
    text = "keep the last two checkpoints of a run there"
    add("--checkpoint-dir", type=path, metavar="DIR", help=text)
    text = "steps between two checkpoints (else one at the end of each epoch)"
    add("--checkpoint-every", type=count(STEPS), metavar="N", help=text)
    text = "resume from the newest checkpoint there, or start from the beginning if there is none: "
    text += "on the same setup, it ends with the same bits as a run that was never stopped"
    add("--resume", action="store_true", help=text)
    text = "resume from this checkpoint, of any framework and any number of devices: "
    text += "the numbers are the same except for rounding"
    add("--resume-from", type=path, metavar="FILE", help=text)
