"""Verdicts for people: on the terminal, as Markdown, as a page."""
