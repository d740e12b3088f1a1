"""Training on a table while rows are inserted: each pass reads what is there by then.

A thread stands for the programs that write all the time. The training opens the table once; each pass over the dataset
is a scan of its own, so it sees the rows that came since the last one. In a pass every row comes once; one that is
written meanwhile comes in this pass or in the next.
"""

from __future__ import annotations

import argparse
import threading

import points
import tensorflow as tf

from yardmaster_runner import data


def write(first: int, stop: threading.Event) -> None:
    connection = points.connected()
    while not stop.wait(0.1):
        points.insert(connection, first, 50)
        first += 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=20)
    passes = parser.parse_args().passes
    connection = points.connected()
    there = points.make_table(connection)
    if not there:  # the types of the fields are read from rows
        points.insert(connection, 0, 50)
        there = 50
    stop = threading.Event()
    writer = threading.Thread(target=write, args=(there, stop), daemon=True)
    writer.start()
    table = data.ignite(points.CACHE, 32, fields=["val.X", "val.Y"])
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)
    for number in range(1, passes + 1):
        rows, loss = 0, tf.constant(0.0)
        for row in table:
            x, y = tf.cast(row["val"]["X"], tf.float32), tf.cast(row["val"]["Y"], tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((slope * x + offset - y) ** 2)
            for variable, gradient in zip((slope, offset), tape.gradient(loss, (slope, offset)), strict=True):
                variable.assign_sub(0.2 * gradient)
            rows += int(x.shape[0])
        print(f"pass {number}: {rows} rows, loss {float(loss):.4f}", flush=True)
    stop.set()
    writer.join()
    print(f"slope {float(slope):.2f}, offset {float(offset):.2f}")


if __name__ == "__main__":
    main()
