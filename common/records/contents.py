"""What arrays a run must leave."""

from typing import Final

from common.models.nets import Shapes, trainable
from common.records.record import Record
from common.records.trace import trace_shapes
from common.settings.steps import number_of_steps


def expected_arrays(record: Record) -> dict[str, tuple[tuple[int, ...], str]]:
    """The name, shape and dtype of every array that a run must leave."""
    config = record.config
    probe = min(PROBE, config.test_examples)
    shapes: Shapes = {"logits/before": (probe, 10), "logits/after": (probe, 10)}
    images = min(LAYERS_PROBE, config.test_examples)
    for name, shape in config.options.layer_shapes().items():
        shapes |= {f"layers/{when}/{name}": (images, *shape) for when in ("before", "after")}
    for name, shape in config.shapes().items():
        shapes[f"weights/{name}"] = shape
        if trainable(name):
            shapes[f"gradients/{name}"] = shape
    small = {
        "probe/images": (probe, 28, 28),
        "test/labels": (config.test_examples,),
        "test/predictions": (len(record.epochs), config.test_examples),
    }
    for name, shape in trace_shapes(config).items():
        (small if name.startswith(("trace/images/", "trace/labels/")) else shapes)[name] = shape
    return {
        **{name: (shape, config.dtype) for name, shape in shapes.items()},
        **{name: (shape, "uint8") for name, shape in small.items()},
        "losses": ((number_of_steps(config),), "float64"),
    }


PROBE: Final = 100
"""Examples in the probe batch: the first of the test set."""

LAYERS_PROBE: Final = 10
"""Of them, those of which a run keeps what each layer makes: of all it would be 45 MB and more."""
