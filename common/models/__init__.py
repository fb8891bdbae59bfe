"""The nets: names and shapes of their weights, initial weights, files of weights."""
