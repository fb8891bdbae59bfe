"""Whether runs computed the same: every check, its tolerance, and what runs are compared with.

Records in, findings out. `folder.examine` reads the records of each suite (`collect`), has their
steps recomputed in NumPy (`recorded_steps`, `numpy_nets`), and makes every check (`CHECKS` in
`suite`) of every run, each within its limit (`limits`).
"""
