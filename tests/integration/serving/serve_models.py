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


def flat(x, place):
    """Scores of two classes, and a price, as TensorFlow 1 exports them."""
    both = tf.stack([x, 1 - x], axis=1)
    names = tf.tile(tf.constant([["large", "small"]]), [tf.shape(x)[0], 1])
    price = tf.stack([x * 2 + tf.cast(tf.strings.length(place), tf.float32)], axis=1)
    v1 = tf.compat.v1.saved_model
    return {
        "serving_default": v1.classification_signature_def(examples, names, both),
        "scores": v1.classification_signature_def(examples, None, both),
        "classes": v1.classification_signature_def(examples, names, None),
        "price": v1.regression_signature_def(examples, price),
        "plain": v1.predict_signature_def({"x": x}, {"y": both}),
    }


with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
    examples = tf.compat.v1.placeholder(tf.string, [None])
    wanted = {"x": tf.io.FixedLenFeature([], tf.float32), "place": tf.io.FixedLenFeature([], tf.string, "")}
    parsed = tf.io.parse_example(examples, wanted)
    for form in (False, True):
        builder = tf.compat.v1.saved_model.Builder(here + ("/flat_text" if form else "/flat"))
        signatures = flat(parsed["x"], parsed["place"])
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save(as_text=form)
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

told = {"sockets": {}, "refused": {}}
for name in ("small", "flat", "flat_text", "keras", "h5", "without", "broken", "torch"):
    try:
        api = Api(name, "7", 1 << 20)
        api.loaded = load(os.path.join(here, name))
    except NotLoaded as error:
        told["refused"][name] = str(error)
        continue
    server = Server(os.path.join(here, name + ".s"), api.answer, 1 << 20)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told["sockets"][name] = server.server_address
print(json.dumps(told), flush=True)
sys.stdin.read()
