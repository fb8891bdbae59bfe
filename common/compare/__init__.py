"""Whether runs computed the same: every check, its tolerance, and what runs are compared with."""
