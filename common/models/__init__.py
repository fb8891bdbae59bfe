"""The nets: names and shapes of their weights, files of weights, how much arithmetic they take."""
