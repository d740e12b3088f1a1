"""Preparation: folders of images, tables, text or arrays become TFRecord shards with one `dataset.json`.

Run it with `python -m yardmaster_runner.prepare`. Importing needs the standard library only; writing needs NumPy, and
for more than a few records TensorFlow.
"""
