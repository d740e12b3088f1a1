"""What `preparing.py` runs in the Python of tasks. `make` writes inputs; else each line of stdin is a piece of work,
which is timed. With a limit of memory as the argument the process has no more of it, TensorFlow included."""

import csv
import glob
import os
import random
import resource
import shutil
import sys
import time

if sys.argv[1].isdecimal():
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

from yardmaster_runner.prepare.work import Options, Work

PICTURES, CLASSES, DISTINCT = 3_000, 10, 64
ROWS, COLUMNS = 40_000, 20


def make(top):
    """Pictures of about 10 kB in folders of classes; one table of numbers with a label of text."""
    noise = tf.cast(tf.random.uniform([DISTINCT, 128, 128, 3], 0, 255), tf.uint8)
    pictures = [tf.io.encode_jpeg(one, quality=60).numpy() for one in noise]
    for number in range(PICTURES):
        folder = f"{top}/pictures/class-{number % CLASSES}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{number:05}.jpg", "wb") as file:
            file.write(pictures[number % DISTINCT])
    os.makedirs(f"{top}/table")
    draw = random.Random(1)
    with open(f"{top}/table/all.csv", "w") as file:
        file.write(",".join([f"column {number}" for number in range(COLUMNS)] + ["label", "id"]) + "\n")
        for number in range(ROWS):
            values = ",".join(f"{draw.random():.4f}" for _ in range(COLUMNS))
            file.write(f"{values},{draw.choice(['cat', 'dog'])},{number}\n")


def prepare(source, output, worker, workers):
    """The preparation."""
    label = "label" if source.endswith("table") else ""
    os.makedirs(output)
    Work(Options(source, output, worker=int(worker), workers=int(workers), label=label), lambda line: None).run()


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def whole(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def bare(source, output, *_):
    """What people write by hand: the same records without checks, splits and statistics."""
    os.makedirs(output)
    with tf.io.TFRecordWriter(f"{output}/all.tfrecord") as writer:
        for features in bare_table(source) if source.endswith("table") else bare_pictures(source):
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def bare_table(source):
    with open(f"{source}/all.csv", newline="") as file:
        rows = csv.reader(file)
        *columns, _, _ = next(rows)
        for *values, label, number in rows:
            yield {
                **{name: floats(float(value)) for name, value in zip(columns, values, strict=True)},
                "label": whole(int(label == "dog")),
                "id": whole(int(number)),
            }


def bare_pictures(source):
    for path in glob.glob(f"{source}/*/*.jpg"):
        with open(path, "rb") as file:
            data = tf.train.Feature(bytes_list=tf.train.BytesList(value=[file.read()]))
        yield {"image": data, "label": whole(int(path.split("/")[-2].rpartition("-")[2]))}


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        what, source, output, *numbers = line.split()
        shutil.rmtree(output, ignore_errors=True)
        begun = time.perf_counter()
        {"prepare": prepare, "bare": bare}[what](source, output, *numbers)
        print(what, time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)


main()
