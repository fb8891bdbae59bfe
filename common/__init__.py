"""What all four frameworks share: data, weights, the training loop, records and parity.

Nothing in here imports a deep learning framework; NumPy 1.23 and NumPy 2 both serve.
"""
