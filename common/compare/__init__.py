"""Whether runs computed the same: every check, its tolerance, and what runs are compared with.

Records in, verdict out. `folder.examine` reads the records of each suite (`collect`, `runs`) and
makes every check (`CHECKS` in `checks`) of every run, each within its limit (`limits`): against
other runs, and against NumPy, which recomputes its steps (`recorded_steps`, `numpy_nets`).
"""
