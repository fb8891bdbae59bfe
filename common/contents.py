"""What arrays a run must leave."""

from common.models import Shapes, layer_shapes, shapes_of, trainable
from common.record import Record
from common.steps import number_of_steps
from common.trace import trace_shapes
from common.training import LAYERS_PROBE, PROBE


def expected_arrays(record: Record) -> dict[str, tuple[tuple[int, ...], str]]:
    """The name, shape and dtype of every array that a run must leave."""
    config = record.config
    probe = min(PROBE, config.test_examples)
    shapes: Shapes = {"logits/before": (probe, 10), "logits/after": (probe, 10)}
    if config.layers and config.width:
        images = min(LAYERS_PROBE, config.test_examples)
        for name, shape in layer_shapes(config.width).items():
            shapes |= {f"layers/{when}/{name}": (images, *shape) for when in ("before", "after")}
    for name, shape in shapes_of(record.chapter, config.width).items():
        shapes[f"weights/{name}"] = shape
        if trainable(name):
            shapes[f"gradients/{name}"] = shape
    small = {
        "probe/images": (probe, 28, 28),
        "test/labels": (config.test_examples,),
        "test/predictions": (len(record.epochs), config.test_examples),
    }
    for name, shape in trace_shapes(config).items():
        (shapes if name.startswith("trace/weights/") else small)[name] = shape
    return {
        **{name: (shape, config.dtype) for name, shape in shapes.items()},
        **{name: (shape, "uint8") for name, shape in small.items()},
        "losses": ((number_of_steps(config),), "float64"),
    }
