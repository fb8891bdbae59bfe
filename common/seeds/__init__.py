"""How much of an accuracy is chance."""
