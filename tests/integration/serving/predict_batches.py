"""Runs batch inference over small datasets in one process that imports TensorFlow once. Run by the Python of tasks."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from yardmaster_runner.predict.work import Options, Work
from yardmaster_runner.prepare.merging import merged_texts
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.serving.loading import Loaded

top = sys.argv[1]


class Small(tf.Module):
    """One signature per kind of data."""

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def numbers(self, x):
        tf.debugging.assert_less(x, 1000.0, "too large")
        return {"sum": tf.reduce_sum(x, 1), "row": tf.cast(x, tf.int64)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def words(self, text):
        return {"length": tf.strings.length(text), "text": text}

    @tf.function(input_signature=[tf.TensorSpec([None, 2, 2, 1], tf.float32, name="pixels")])
    def pictures(self, pixels):
        return {"mean": tf.reduce_mean(pixels, [1, 2, 3])}

    @tf.function(input_signature=[tf.TensorSpec([4, 2], tf.float32, name="x")])
    def fours(self, x):
        return {"sum": tf.reduce_sum(x, 1)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64, name="ids")])
    def lists(self, ids):
        return {"total": tf.reduce_sum(ids, 1), "root": tf.sqrt(-tf.ones_like(ids[:, 0], tf.float32))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serialized(self, examples):
        found = tf.io.parse_example(examples, {"label": tf.io.FixedLenFeature([], tf.int64)})
        return {"label": found["label"]}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def one(self, x):
        return {"sum": tf.reduce_sum(x)}


small = Small()
names = ("numbers", "words", "pictures", "fours", "lists", "serialized", "one")
tf.saved_model.save(small, top + "/model", signatures={name: getattr(small, name) for name in names})


def write(path, data):
    os.makedirs(os.path.dirname(top + "/" + path), exist_ok=True)
    with open(top + "/" + path, "wb") as file:
        file.write(data)


def shard(path, examples, compression=""):
    os.makedirs(os.path.dirname(top + "/" + path), exist_ok=True)
    with tf.io.TFRecordWriter(top + "/" + path, compression) as writer:
        for features in examples:
            made = {name: tf.train.Feature(**{kind: {"value": found}}) for name, (kind, found) in features.items()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString())


write("csv/a.csv", b"id,u,v\n" + b"".join(b"%d,%d,0.5\n" % (n, n) for n in range(10)))
write("csv/b.csv", b"id,u,v\n7,70,0.5\n8,oops,1\n9,2000,1\n10,1,1\n")
write("jsonl/a.jsonl", b'{"ids": [1, 2], "n": 1}\n{"ids": [3], "n": 1.5}\n{"n": 2}\n{"ids": [4, 5], "n": 3}\n')
write("text/good/1.txt", "hé".encode())
write("text/bad/2.txt", b"\xff")
picture = io.BytesIO()
Image.fromarray(np.full((8, 8), 51, np.uint8)).save(picture, "png")
write("text/good/3.txt", b"a")
write("images/cat/1.png", picture.getvalue())
write("images/cat/2.png", picture.getvalue()[:-20])
rows = [{"x": ("float_list", [n, 1]), "label": ("int64_list", [n % 2])} for n in range(6)]
shard("records/train/train-00000.tfrecord.gz", rows[:4], "GZIP")
shard("records/test/test-00000.tfrecord.gz", rows[4:], "GZIP")
sizes = {one: os.path.getsize(f"{top}/records/{one}/{one}-00000.tfrecord.gz") for one in ("train", "test")}
features = {"x": {"kind": "float", "shape": [2]}, "label": {"kind": "int64", "shape": []}}
splits = {
    one: [{"path": f"{one}/{one}-00000.tfrecord.gz", "records": count, "size": sizes[one]}]
    for one, count in (("train", 4), ("test", 2))
}
described = {"format": "yardmaster-dataset", "version": 1, "compression": "GZIP", "label": "label"}
write("records/dataset.json", json.dumps({**described, "features": features, "splits": splits}).encode())
shard("cut/a.tfrecord", rows)
with open(top + "/cut/a.tfrecord", "r+b") as file:
    file.truncate(os.path.getsize(top + "/cut/a.tfrecord") - 10)
for name in ("plain", "flipped"):
    shard(name + "/a.tfrecord", rows)
with open(top + "/flipped/a.tfrecord", "r+b") as file:
    size = os.path.getsize(top + "/flipped/a.tfrecord") // 6
    file.seek(3 * size + 20)
    file.write(b"!")
os.makedirs(top + "/numpy")
np.save(top + "/numpy/x.npy", np.arange(6, dtype="float32").reshape(3, 2))
np.save(top + "/numpy/y.npy", np.arange(3))


def read(folder, about):
    found = []
    for one in about["splits"]["predictions"]:
        path = f"{folder}/{one['path']}"
        if about.get("file_format") == "jsonl":
            found += [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
            continue
        for record in tf.data.TFRecordDataset(path, about["compression"]).as_numpy_iterator():
            members = tf.train.Example.FromString(record).features.feature.items()
            kinds = {name: getattr(value, value.WhichOneof("kind")).value for name, value in members}
            found.append({
                name: [v.decode() if isinstance(v, bytes) else v for v in value] for name, value in kinds.items()
            })  # fmt: skip
    return found


calls = []
run = Loaded.run
Loaded.run = lambda *words: calls.append(words) or run(*words)


def predict(name, data, workers=1, **options):
    output, said = f"{top}/out-{name}", []
    calls.clear()
    try:
        for worker in range(workers):
            asked = Options(
                top + "/model", f"{top}/{data}", output, worker=worker, workers=workers, **options
            )  # fmt: skip
            os.makedirs(output, exist_ok=True)
            Work(asked, said.append).run()
        texts = [Path(f"{output}/part-{worker}.json").read_text("utf-8") for worker in range(workers)]
    except (BadRecord, PrepareError) as error:
        return {"error": str(error)}
    about = merged_texts(texts)
    if "error" in about:
        return {"error": about["error"]}
    text = json.loads(about["text"])
    found = {"about": text, "rows": read(output, text), "said": said, "calls": len(calls)}
    return found | {"skipped": about["skipped"], "bad": about["bad"]}


csv = {"signature": "numbers", "columns": "x=u+v", "keep": "id"}
told = {
    "csv": predict("csv", "csv", 2, most_bad=2, batch=3, shard_bytes=200, **csv),
    "bad": predict("bad", "csv", **csv),
    "many": predict("many", "csv", 2, most_bad=1, **csv),
    "jsonl": predict("jsonl", "jsonl", signature="lists", most_bad=1, keep="n"),
    "text": predict("text", "text", signature="words", most_bad=1, keep="label"),
    "images": predict("images", "images", signature="pictures", most_bad=1, pixels="0-1"),
    "records": predict("records", "records", 2, signature="numbers", keep="label", write="tfrecord-gzip"),
    "test": predict("test", "records", signature="numbers", split="test"),
    "fours": predict("fours", "records", signature="fours", write="tfrecord"),
    "serialized": predict("serialized", "records", signature="serialized"),
    "numpy": predict("numpy", "numpy", signature="numbers"),
    "plain": predict("plain", "plain", signature="numbers", keep="label"),
    "flipped": predict("flipped", "flipped", signature="serialized", most_bad=9),
    "cut": predict("cut", "cut", signature="serialized", most_bad=9),
    "one": predict("one", "numpy", signature="one"),
    "unfed": predict("unfed", "csv", signature="numbers"),
    "unknown": predict("unknown", "csv", signature="absent"),
}
print(json.dumps(told))
