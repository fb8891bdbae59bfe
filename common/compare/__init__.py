"""Whether runs computed the same: every check, its tolerance, and what runs are compared with.

`folder.load` reads the records of each suite (`runs`), `comparison.recompute_steps`
repeats their steps in NumPy (`recorded_steps`, `numpy_nets`), and `comparison.compare` makes every
check (`CHECKS` in `checks`) of every run, each within its limit (`limits`): against other runs
(`peers`) and against NumPy. The last two read no file.
"""
