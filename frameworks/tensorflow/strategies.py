"""LeNet split over devices by each strategy, from scratch, in TensorFlow.

python -m frameworks.tensorflow.strategies --strategy pipeline --devices 2 --preset quick
"""

if __name__ == "__main__":
    from common.training.cli import main

    raise SystemExit(main("tensorflow", "strategies"))
