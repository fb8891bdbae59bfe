"""Hostile files for every reader of the project, millions of them, led by coverage."""
