"""MXNet's servers send weights and sums back as they are."""

from typing import Final

import pytest
from started import python

SCRIPT: Final = """
import os
import sys
from types import SimpleNamespace
import mxnet as mx
from mxnet import autograd, gluon, npx
npx.set_np()
from frameworks.mxnet import hosts
from frameworks.mxnet.wrappers import trainer_of

def work(process):
    weights = [gluon.Parameter(f"p{each}", shape=(20000,), dtype="DTYPE") for each in range(120)]
    for weight in weights:
        weight.initialize(mx.init.Constant(1))
        with autograd.record():
            loss = (weight.data() / 3).sum()
        loss.backward()
    third = weights[0].grad().copy()
    npx.waitall()
    net = SimpleNamespace(collect_params=lambda: weights)
    trainer_of(net, hosts.ENGINE).allreduce_grads()
    npx.waitall()
    print([weight.name for weight in weights if not (weight.data().asnumpy() == 1).all()])
    print([weight.name for weight in weights if not (weight.grad() == third).all()])

hosts.launch(work, None, SimpleNamespace(wrapper=hosts.ENGINE))
sys.stdout.flush()
os._exit(0)
"""
"""It ends as each of several processes does."""
CACHE: Final = "glibc.malloc.tcache_count=0"
FILLED: Final = [
    *({},) * 5,  # with Gluon's trainer, one run in four failed
    *({"GLIBC_TUNABLES": f"glibc.malloc.perturb={byte}:{CACHE}"} for byte in (85, 254)),
]


@pytest.mark.only("mxnet")
def test_no_weight_becomes_a_sum_and_sums_are_right_whatever_lies_in_memory(
    framework: str,
) -> None:
    for filled in FILLED:
        script = SCRIPT.replace("DTYPE", "float64" if filled else "float32")
        ran = python("-c", script, **filled)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == "[]\n[]\n", filled  # names of wrong weights, and of wrong sums
