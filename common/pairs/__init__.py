"""Two files compared, array by array."""
