"""Verdicts for people: on the terminal, and as a page."""
