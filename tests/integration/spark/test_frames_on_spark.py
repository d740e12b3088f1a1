"""TFRecord files as DataFrames and back, on a Spark in one process of its own, without a portal."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from portal.env import spark_folder, task_python
from tests.real.scene import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.tensorflow, pytest.mark.long, pytest.mark.timeout(600)]

LITTLE = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
"""Of a Java that does not live for long: it compiles less."""
SCRIPT = """
import os, sys
from pyspark.sql import SparkSession
from yardmaster_runner import data
from yardmaster_runner.data import frames

top = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
made = spark.createDataFrame(
    [(number, number / 4, [number, -number], "größe %d" % number, None if number else b"x") for number in range(20)],
    "label long, score double, pair array<int>, name string, rare binary",
).repartition(3)
assert data.write_dataset(made, top + "/shared") == 20
names = sorted(os.listdir(top + "/shared"))
assert names == ["part-0000%d.tfrecord" % number for number in range(3)], names

frames._write_there = lambda folder, mark, kinds, index, rows: iter([(index, None)])  # as with disks of their own
assert data.write_dataset(made, top + "/apart") == 20

read = data.dataframe(spark, top + "/shared")
types = "struct<label:bigint,name:binary,pair:array<bigint>,rare:binary,score:float>"
assert read.schema.simpleString() == types, read.schema.simpleString()
assert read.rdd.getNumPartitions() == 3
rows = {row.label: row for row in read.collect()}
assert len(rows) == 20
assert (rows[6].score, rows[6].pair, bytes(rows[6].name).decode(), rows[6].rare) == (1.5, [6, -6], "größe 6", None)
assert bytes(rows[0].rare) == b"x"
assert read.where("score > 4").count() == 3
again = data.dataframe(spark, top + "/apart")
assert sorted(row.label for row in again.collect()) == list(range(20))
try:
    data.write_dataset(made, top + "/shared")
except data.DataError as error:
    assert "not empty" in str(error)

bad = top + "/shared/" + names[1]
whole = open(bad, "rb").read()
open(bad, "wb").write(whole[:-6] + b"!" + whole[-5:])
try:
    read.count()
except Exception as error:
    print("BAD", [line for line in str(error).splitlines() if "DataError: " in line][0])
open(bad, "wb").write(whole)
spark.stop()

import tensorflow as tf

features = {"label": tf.io.FixedLenFeature([], tf.int64), "pair": tf.io.FixedLenFeature([2], tf.int64),
            "score": tf.io.FixedLenFeature([], tf.float32), "name": tf.io.FixedLenFeature([], tf.string)}
for folder in ("shared", "apart"):
    shards = tf.data.TFRecordDataset([os.path.join(top, folder, name) for name in names])
    found = {int(one["label"]): one for one in shards.map(lambda one: tf.io.parse_single_example(one, features))}
    assert len(found) == 20
    assert found[6]["pair"].numpy().tolist() == [6, -6] and float(found[6]["score"]) == 1.5
    assert found[6]["name"].numpy().decode() == "größe 6"
print("DONE")
"""


def test_a_dataframe_is_written_as_shards_that_tensorflow_and_spark_read(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(ROOT / "platform"), spark_folder()])
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": task_python()}
    environment = {**os.environ, **quiet, "PYTHONPATH": path, "PYSPARK_SUBMIT_ARGS": LITTLE}
    command = [task_python(), str(script), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "DONE" in done.stdout
    (bad,) = [line for line in done.stdout.splitlines() if line.startswith("BAD")]
    assert "shared/part-00001.tfrecord: the record at byte " in bad
    assert "its checksum is wrong" in bad
