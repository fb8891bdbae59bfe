"""Where a wrong run diverges, and why."""
