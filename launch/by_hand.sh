#!/bin/bash
# Trains over hosts without a launcher. In the repository's root of each of two hosts, where n1 is
# the first: launch/by_hand.sh n1:29500 2 0, and on the other: launch/by_hand.sh n1:29500 2 1
FRAMEWORK=${FRAMEWORK:-pytorch}        # or tensorflow, jax, mxnet
CHAPTER=${CHAPTER:-concise}            # ResNet-18; scratch is LeNet
DEVICES=${DEVICES:-2}                  # of all hosts together, the same number on each
FLAGS=${FLAGS:---preset quick}         # and any others that `--help` lists

# Here `python` has to be one that has the framework: activate its environment before this line.
# The hosts have to reach each other at every port: this one, and others that the system chooses.
# shellcheck disable=SC2086
exec python -m "frameworks.$FRAMEWORK.$CHAPTER" --devices "$DEVICES" $FLAGS \
    --coordinator "${1:?host:port}" --hosts "${2:?hosts}" --host-rank "${3:?this host, from 0}"
