"""A script that exports a small model: `doubled` is twice `x`, which has two numbers."""

from __future__ import annotations

EXPORT = """
import os
import tensorflow as tf

class Double(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def __call__(self, x):
        return {"doubled": 2.0 * x}

model = Double()
tf.saved_model.save(model, os.environ["MODEL_DIR"], signatures=model.__call__)
"""
