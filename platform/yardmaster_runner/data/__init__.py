"""Data for a script: what a dataset holds, and how its records reach TensorFlow.

    from yardmaster_runner import data

    train = data.dataset("reviews", split="train", batch=64)

`description` is the form in which preparation jobs describe what they wrote, and in which scripts read it. TensorFlow
is imported when a `tf.data.Dataset` is asked for. Nothing here needs a job: with the path of a prepared folder in the
place of a name, the same script runs anywhere.
"""

from yardmaster_runner.data.description import Description
from yardmaster_runner.data.frames import dataframe, write_dataset
from yardmaster_runner.data.ignite_reader.dataset import IgniteDataset, ignite
from yardmaster_runner.data.inputs import DataError, DataUnavailable, describe, path
from yardmaster_runner.data.reading import dataset, records

__all__ = [
    "DataError",
    "DataUnavailable",
    "Description",
    "IgniteDataset",
    "dataframe",
    "dataset",
    "describe",
    "ignite",
    "path",
    "records",
    "write_dataset",
]
