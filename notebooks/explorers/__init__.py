"""Figures in which a reader changes a plan or steps through an allreduce: forms, and answers.

Only the standard library and `common`'s own code: a page runs it, too.
"""
