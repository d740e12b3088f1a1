"""Makes small models and serves each, in one process that imports TensorFlow once. Run by the Python of tasks."""

import json
import os
import sys
import threading

import tensorflow as tf

from yardmaster_runner.serving.api import Api
from yardmaster_runner.serving.http_server import Server
from yardmaster_runner.serving.loading import NotLoaded, load

here = sys.argv[1]


class Small(tf.Module):
    """Two signatures: numbers, and text with numbers."""

    def __init__(self):
        self.weights = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def numbers(self, x):
        return {"y": x @ self.weights}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="text"), tf.TensorSpec([None], tf.int64, name="more")]
    )
    def words(self, text, more):
        return {"length": tf.strings.length(text) + tf.cast(more, tf.int32), "raw_bytes": text}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def roots(self, x):
        return {"root": tf.sqrt(x), "sum": tf.reduce_sum(x)}


small = Small()
signatures = {"serving_default": small.numbers, "words": small.words, "roots": small.roots}
for version in (1, 2):
    tf.saved_model.save(small, f"{here}/small/{version}", signatures=signatures)
    small.weights.assign_add([[1.0, 1.0], [1.0, 1.0]])
tf.saved_model.save(tf.Module(), here + "/without")
keras = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, kernel_initializer="ones")])
os.makedirs(here + "/keras")
keras.save(here + "/keras/model.keras")
os.makedirs(here + "/h5")
keras.save(here + "/h5/model.h5")
os.makedirs(here + "/broken")
with open(here + "/broken/saved_model.pb", "wb") as file:
    file.write(b"not a model")
os.makedirs(here + "/torch")
with open(here + "/torch/model.pt", "wb") as file:
    file.write(b"PK")

told = {"ports": {}, "refused": {}}
for name in ("small", "keras", "h5", "without", "broken", "torch"):
    try:
        api = Api(name, "7", "secret", 1 << 20)
        api.loaded = load(os.path.join(here, name))
    except NotLoaded as error:
        told["refused"][name] = str(error)
        continue
    server = Server(("127.0.0.1", 0), api.answer, 1 << 20)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told["ports"][name] = server.server_port
print(json.dumps(told), flush=True)
sys.stdin.read()
