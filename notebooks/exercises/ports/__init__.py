"""LeNet and its training in each framework's usual code, for the kinds `model` and `step`."""
