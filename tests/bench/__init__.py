"""`python -m tests.bench [NAME …]`: speed and memory against the goals. Ratios, measured interleaved in one run.

Prints a line per figure (name, value, goal, `ok` or `short`), writes them as JSON to `bench-results/`, and exits 0: a
short value is told, not hidden, and a slow machine breaks nobody's build. Never part of the tests.
"""
