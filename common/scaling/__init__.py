"""The alpha-beta model of allreduce: latency, time per byte sent, time per byte added."""
