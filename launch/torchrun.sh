#!/bin/bash
# ResNet-18 in PyTorch over hosts. In the repository's root of each of two hosts, the same line:
# launch/torchrun.sh n1:29400 2 --preset quick
# `python` needs PyTorch. With GPUs, NPROC=4 starts four processes, one a GPU. All hosts share
# results/kept. --local-addr=ADDRESS helps where others do not know the name of a host.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # else restarted processes look for the lost ones
exec python -m torch.distributed.run --nnodes="${2:?hosts}" --nproc-per-node="${NPROC:-1}" \
    --rdzv-backend=c10d --rdzv-endpoint="${1:?host:port}" --rdzv-id=parity --max-restarts=1 \
    -m frameworks.pytorch.concise "${@:3}" --checkpoint-dir results/kept --resume
