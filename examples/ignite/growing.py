"""Training on a table while rows are inserted: each pass reads what is there by then.

A thread stands for the programs that write all the time. The training opens the table once; each pass over the dataset
is a scan of its own, so it sees the rows that came since the last one. In a pass every row comes once; one that is
written meanwhile comes in this pass or in the next.

The table GROWING is made for this run: one of an earlier run is dropped, so run one at a time. The thread inserts 100
rows a second, and 100 for each pass; pass N begins when 100 N rows are there. So 20 passes end soon after 20 seconds.
"""

from __future__ import annotations

import argparse
import threading
import time

import points
import tensorflow as tf

from yardmaster_runner import data
from yardmaster_runner.data.ignite_reader.errors import ConnectionLost

TABLE = "GROWING"
ROWS_OF_PASS = 100
ROWS_AT_ONCE = 10
PAUSE = 0.1
RATE = 0.05


class Writer(threading.Thread):
    """Inserts so many rows, a few at a time."""

    def __init__(self, rows: int) -> None:
        super().__init__(daemon=True)
        self._connection = points.connected()
        self._rows, self._written = rows, 0
        self._is_over, self._error = False, None
        self._changed = threading.Condition()
        points.drop_table(self._connection, TABLE)
        points.make_table(self._connection, TABLE)
        self._insert()  # the types of the fields are read from rows

    def run(self) -> None:
        try:
            while self._written < self._rows:
                time.sleep(PAUSE)
                self._insert()
        except ConnectionLost as error:
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def wait_for(self, rows: int) -> None:
        """Until so many are in the table. Raises what has ended the thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._written >= rows)
        if self._written < rows:
            raise self._error or RuntimeError("the thread that inserts rows has ended")

    def _insert(self) -> None:
        points.insert(self._connection, self._written, ROWS_AT_ONCE, TABLE)
        with self._changed:
            self._written += ROWS_AT_ONCE
            self._changed.notify_all()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=20)
    passes = parser.parse_args().passes
    writer = Writer(passes * ROWS_OF_PASS)
    writer.start()
    table = data.ignite(f"SQL_PUBLIC_{TABLE}", 32, fields=["val.X", "val.Y"])
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)
    for number in range(1, passes + 1):
        writer.wait_for(number * ROWS_OF_PASS)
        rows, total = 0, 0.0
        for row in table:
            x, y = tf.cast(row["val"]["X"], tf.float32), tf.cast(row["val"]["Y"], tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((slope * x + offset - y) ** 2)
            for variable, gradient in zip((slope, offset), tape.gradient(loss, (slope, offset)), strict=True):
                variable.assign_sub(RATE * gradient)
            rows += int(x.shape[0])
            total += float(loss) * int(x.shape[0])
        print(f"pass {number}: {rows} rows, loss {total / rows:.4f}", flush=True)
    print(f"slope {float(slope):.2f}, offset {float(offset):.2f}")


if __name__ == "__main__":
    main()
