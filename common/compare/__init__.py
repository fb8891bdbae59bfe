"""Records in, findings out: tolerances, checks, and what each chapter is compared with.

Read it from `folder.examine`: it reads the records of each suite (`collect`), has their steps
recomputed in NumPy (`recorded_steps`, `numpy_nets`), and makes every check (`CHECKS` of `suite`)
of every run, each within its limit (`limits`).
"""
