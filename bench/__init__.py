"""How fast the four frameworks are here, and what they are measured against."""
