"""How fast the four frameworks are here, and how fast others are."""
