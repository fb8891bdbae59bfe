"""The solutions of the exercises; each has a test."""
