"""On how many devices a framework's wrappers run here: some do nothing where there is only one."""

import gc
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

WRAPPERS: Final[dict[tuple[str, str], Callable[[Any], int]]] = {
    # Without a GPU, it has no device_ids, and calls the net once.
    ("torch", "nn.DataParallel"): lambda net: len(net.device_ids) or 1,
    ("tensorflow", "distribute.Strategy"): lambda strategy: strategy.num_replicas_in_sync,
    ("jax", "sharding.Mesh"): lambda mesh: mesh.size,  # pmap makes one, too
    # On other backends than JAX, it splits nothing.
    ("keras", "distribution.DataParallel"): lambda split: (
        split.device_mesh.devices.size if sys.modules["keras"].config.backend() == "jax" else 1
    ),
}
"""The number of devices of an object, by module and class."""


def wrappers() -> dict[str, int]:
    """The most devices of the objects of each class in this process; an empty mesh is none."""
    loaded = [item for item in WRAPPERS.items() if item[0][0] in sys.modules]
    kinds = [(attrgetter(name)(sys.modules[root]), count) for (root, name), count in loaded]
    seen: dict[str, int] = {}
    for thing in gc.get_objects():
        name, parents = type(thing).__name__, type(thing).__mro__
        for count in (count for kind, count in kinds if kind in parents and name[0] != "_"):
            seen[name] = max(count(thing), seen.get(name, 0))
    group = sys.modules.get("torch.distributed")
    if group and group.is_available() and group.is_initialized():
        seen["torch.distributed"] = group.get_world_size()
    return {name: count for name, count in seen.items() if count}
