"""LeNet split over devices by each strategy, from scratch, in PyTorch.

python -m frameworks.pytorch.strategies --strategy pipeline --devices 2 --preset quick
"""

if __name__ == "__main__":
    from common.training.cli import main

    raise SystemExit(main("pytorch", "strategies"))
