"""The comparison of two files, array by array."""
