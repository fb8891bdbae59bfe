"""How fast the four frameworks train here, and how fast the usual tools do."""
