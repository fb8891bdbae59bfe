"""LeNet, split by PyTorch's own means: one process for each device."""
