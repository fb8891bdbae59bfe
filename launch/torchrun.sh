#!/bin/bash
# Trains over hosts with PyTorch's torchrun. In the repository's root of each of two hosts, the
# same line, which names one of them: launch/torchrun.sh n1:29400 2
FRAMEWORK=${FRAMEWORK:-pytorch}        # the only one that torchrun serves
CHAPTER=${CHAPTER:-concise}            # ResNet-18; scratch is LeNet
DEVICES=${DEVICES:-2}                  # of all hosts together, the same number on each
FLAGS=${FLAGS:---preset quick}         # and any others that `--help` lists

# Here `python` has to be one that has the framework: activate its environment before this line.
# A process on each host has all devices there; --nproc-per-node=4 shares them among four.
# Where a host's own name is not known to the others, --local-addr=ADDRESS tells them where it is.
# shellcheck disable=SC2086
exec python -m torch.distributed.run --nnodes="${2:?hosts}" --nproc-per-node=1 \
    --rdzv-backend=c10d --rdzv-endpoint="${1:?host:port}" --rdzv-id=parity \
    -m "frameworks.$FRAMEWORK.$CHAPTER" --devices "$DEVICES" $FLAGS
