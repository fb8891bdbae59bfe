"""Bugs that people have met when they trained on several devices, planted in a run one by one.

None of them raised an error where it was met. The comparison has to turn red.
"""
