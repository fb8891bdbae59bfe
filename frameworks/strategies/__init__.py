"""Strategies by hand: each one is written once, over the primitives of any framework."""
