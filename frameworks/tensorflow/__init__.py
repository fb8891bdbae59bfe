"""The chapters in TensorFlow. Importing this package does not load TensorFlow."""

from typing import TYPE_CHECKING

from common.backends.environment import Environment

if TYPE_CHECKING:
    import tensorflow as tf

    from common.backends.interface import Concise, Scratch
    from common.chapters.concise import ConciseOptions
    from common.chapters.scratch import ScratchOptions
    from frameworks.tensorflow import concise, scratch

    # The type checker proves that the chapters keep the promises of the interface.
    proof: Scratch[str, tf.Tensor, ScratchOptions] = scratch
    proof_concise: Concise[str, concise.Replicas, ConciseOptions] = concise

DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "keras")
"""The packages whose versions a record names."""

PRELOAD = ("frameworks.tensorflow.scratch", "frameworks.tensorflow.concise")
"""What all processes import, and one that they are forked from does for all: it takes seconds."""

ENGINES = {"scratch": "tf.distribute.Server", "concise": "MultiWorkerMirroredStrategy"}
"""What joins the processes of a run over several hosts."""

TRANSPORTS = {"cpu": "gRPC", "gpu": "gRPC"}
"""By what these exchange numbers, which lie on devices of a kind."""

MESSAGES = True
"""Whether a process has means to send one other process what it has."""

ONE_THREAD_EACH = False
"""Virtual devices may use all threads."""

ENVIRONMENT = Environment(
    # Keras may have been told elsewhere to run on another framework.
    decided={"KERAS_BACKEND": "tensorflow"},
    defaults={
        # Errors alone. In float64 it would warn at every step of what oneDNN leaves to other code.
        "TF_CPP_MIN_LOG_LEVEL": "2",
        # By itself it uses oneDNN only on processors with AVX-512 VNNI, and on others, too, a step
        # of LeNet takes half the time with it.
        "TF_ENABLE_ONEDNN_OPTS": "1",
    },
    rounding=("TF_ENABLE_ONEDNN_OPTS",),
)
"""What TensorFlow and Keras read of the environment."""

ENVIRONMENT.apply()
