"""Sweeps: one job many times with other values, of which the best by a metric is looked for. Pure decisions.

What may be tried (`space`), which values each trial has (`trials`), where they go in a specification (`assigning`),
which trials are not worth continuing (`stopping`), and what happens next (`decision`). Not here: jobs.
"""
