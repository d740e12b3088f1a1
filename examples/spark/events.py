"""User events of a shop, generated from a seed: what both scripts of the pipeline read."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, functions

COLUMNS = ("minutes", "pages", "basket", "returning")
"""The features: the length of the visit, the pages seen, the value of the basket, and whether the user came before."""


def events(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """`features` (four numbers from 0 to 1) and `bought` (0 or 1) of each visit. The same for the same seed."""
    made = spark.range(rows, numPartitions=4).withColumn("noise", functions.randn(seed))
    for number, name in enumerate(COLUMNS):
        made = made.withColumn(name, functions.rand(seed + 1 + number))
    wish = 3 * made.basket + 2 * made.pages + 1.5 * made.returning - 1.5 * made.minutes
    return made.select(
        functions.array(*(made[name].cast("float") for name in COLUMNS)).alias("features"),
        (wish + 0.3 * made.noise > 2.5).cast("long").alias("bought"),
    )
