"""The comparison of two files."""
