"""Batch inference: the records of a dataset, in batches through a signature of a model, and what it says of each.

It runs in the task's own Python, in the place of a script (`task`). TensorFlow and NumPy are imported when the model is
loaded; all else is the standard library. Models are loaded by `yardmaster_runner.serving`, tables and arrays read by
`yardmaster_runner.prepare`.
"""
