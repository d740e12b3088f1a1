"""Preparation: folders of images, tables, text or arrays become TFRecord shards with one `dataset.json`.

Run it with `python -m yardmaster_runner.prepare`. Importing needs the standard library only; writing needs TensorFlow
(with NumPy).
"""
