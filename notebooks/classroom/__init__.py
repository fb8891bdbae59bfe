"""What the cells of a notebook call: devices, training with a live curve, short experiments."""
