"""Data for a script: what a dataset holds, and how its records reach TensorFlow.

`description` is the form in which preparation jobs describe what they wrote, and in which scripts read it.
"""
