"""The chapters as prose, and what makes notebooks and a site of them; it holds no framework."""
