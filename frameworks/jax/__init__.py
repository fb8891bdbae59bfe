"""The chapters in JAX. Importing this package does not load JAX."""

from typing import TYPE_CHECKING

from common.backends.environment import Environment

if TYPE_CHECKING:
    import jax

    from common.backends.interface import Concise, Scratch
    from common.chapters.concise import ConciseOptions
    from common.chapters.scratch import ScratchOptions
    from frameworks.jax import concise, scratch

    # The type checker proves that the chapters keep the promises of the interface.
    proof: Scratch[jax.Device, jax.Array, ScratchOptions] = scratch
    proof_concise: Concise[jax.Device, concise.Replicas, ConciseOptions] = concise

DISTRIBUTIONS = ("jax", "jaxlib", "jax-cuda12-plugin", "flax", "optax")
"""The packages whose versions a record names."""

PRELOAD = ("frameworks.jax.scratch", "frameworks.jax.concise")
"""What all processes import, and one that they are forked from does for all: it takes seconds."""

ENGINES = {"scratch": "jax.distributed", "concise": "jax.distributed"}
"""What joins the processes of a run over several hosts."""

TRANSPORTS = {"cpu": "Gloo", "gpu": "NCCL"}
"""By what these exchange numbers, which lie on devices of a kind."""

MESSAGES = True
"""Whether a process has means to send one other process what it has."""

ONE_THREAD_EACH = False
"""Virtual devices may use all threads."""

ENVIRONMENT = Environment()
"""What JAX reads of the environment."""

ENVIRONMENT.apply()
