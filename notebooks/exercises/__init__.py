"""The solutions of the exercises, by chapter; each has a test."""
