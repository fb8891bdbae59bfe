"""The plan of data parallelism: groups of one device, each with the whole net."""

from common.parallel.plans import Plan


class Data(Plan):
    """Nothing is sent within a group; the groups sum their gradients."""

    words = "a replica of the net on each device, each with a shard of the minibatch"
