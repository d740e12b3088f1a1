"""What `spark` measures, as the driver of a Spark cluster: rows of 64 numbers go from an RDD to a function on each
executor, which takes them in batches. Each writes how many it took and in how many seconds into the folder `--out`.

    spark-submit spark_script.py --out=FOLDER --rows=ROWS [--step=SECONDS] [--batch=32]

`--step` stands for what TensorFlow would do with a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import time

from pyspark import SparkContext
from tensorflowonspark import TFCluster

WIDTH = 64


def take(args: argparse.Namespace, context) -> None:
    """What runs on each executor. The clock starts with the second batch: the first waits for the others' start."""
    feed = context.get_data_feed()
    rows, begun = 0, None
    while not feed.should_stop():
        count = len(feed.next_batch(args.batch))
        if args.step:
            time.sleep(args.step)
        if begun is None:
            begun = time.monotonic()
        else:
            rows += count
    took = time.monotonic() - (begun or 0.0)
    with open(os.path.join(args.out, f"{context.executor_id}.json"), "w", encoding="utf-8") as file:
        json.dump([rows, took], file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rows", type=int, required=True, help="for each executor")
    parser.add_argument("--step", type=float, default=0.0)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    context = SparkContext(appName="bench")
    size = int(context.getConf().get("spark.executor.instances", "1"))
    rows = context.range(0, args.rows * size, 1, size).map(lambda number: [float(number % 7)] * WIDTH)
    cluster = TFCluster.run(context, take, args, size, 0, input_mode=TFCluster.InputMode.SPARK, master_node="chief")
    cluster.train(rows, 1)
    cluster.shutdown(grace_secs=1)
    context.stop()


if __name__ == "__main__":
    main()
