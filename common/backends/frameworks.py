"""The frameworks, and what of each is known before it is loaded."""

from typing import Final

FRAMEWORKS: Final = ("pytorch", "tensorflow", "jax", "mxnet")

WRAPPERS: Final = {
    "pytorch": ("ddp", "dp"),
    "tensorflow": ("mirrored",),
    "jax": ("sharding", "shard_map"),
    "mxnet": ("device", "local", "dist_sync"),
}
"""Each framework's own ways to train on several devices; the first is the default."""

IN_PROCESSES: Final = ("ddp",)
"""The wrappers that take a process for each device; all else takes one for all devices."""
