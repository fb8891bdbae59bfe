"""The alpha-beta model of allreduce: `python -m common.scaling`.

A message takes a latency, alpha, and beta for each byte; each byte that is added takes gamma.
"""
