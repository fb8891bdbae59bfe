"""What a run leaves behind, and whether it can be trusted."""
