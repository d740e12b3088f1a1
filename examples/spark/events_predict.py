"""Inference over a DataFrame with an exported model: each executor loads it once and predicts for its partitions.

    spark-submit events_predict.py --data_dir=MODEL --output_dir=OUTPUT

The scores are written to predictions.jsonl in the output directory, one line for each visit. A job that
publishes makes a dataset of that directory. The driver writes them: executors may have disks of their own.
"""

from __future__ import annotations

import argparse
import json
import os

from pyspark.sql import SparkSession
from tensorflowonspark.pipeline import TFModel

from events import events


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True, help="the folder of the exported model")
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    args = parse_flags()
    spark = SparkSession.builder.appName("events").getOrCreate()
    visits = events(spark, args.rows, args.seed)
    model = (
        TFModel(args)
        .setInputMapping({"features": "features"})
        .setOutputMapping({"score": "score"})
        .setSignatureDefKey("serving_default")
        .setExportDir(args.data_dir)
    )
    count = 0
    with open(os.path.join(args.output_dir, "predictions.jsonl"), "w", encoding="utf-8") as file:
        for row in model.transform(visits).toLocalIterator():
            file.write(json.dumps({"score": round(row.score[0], 4)}) + "\n")
            count += 1
    print(f"{count} predictions", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
