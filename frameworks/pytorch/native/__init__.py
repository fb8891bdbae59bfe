"""LeNet, split by PyTorch's native parallelism: one process for each device."""
