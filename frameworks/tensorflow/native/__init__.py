"""LeNet split by TensorFlow's native parallelism: DTensor's layouts."""
