"""A script whose parser refuses what it does not know, and whose flags have names of their own.

    python train.py --data-dir=POINTS --logdir=LOG --report=LOG/report.txt

The portal reads the parser and passes the data as `--data-dir` and the logs as `--logdir`; `--report` is an argument of
the job, with a variable in it.
"""

from __future__ import annotations

import argparse
import os

import numpy as np


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", required=True, help="folder with points.csv")
    parser.add_argument("--logdir", required=True, help="folder for the table of losses")
    parser.add_argument("--report", required=True, help="file for the line that was found")
    parser.add_argument("--epochs", type=int, default=50)
    return parser.parse_args()


def main() -> None:
    flags = parse_flags()
    x, y = np.loadtxt(os.path.join(flags.data_dir, "points.csv"), delimiter=",", skiprows=1, unpack=True)
    slope, offset, losses = 0.0, 0.0, []
    for epoch in range(1, flags.epochs + 1):
        error = slope * x + offset - y
        slope -= 0.1 * float((error * x).mean())
        offset -= 0.1 * float(error.mean())
        losses.append(float((error**2).mean()))
        print(f"Epoch {epoch}/{flags.epochs} loss {losses[-1]:.4f}", flush=True)
    np.savetxt(os.path.join(flags.logdir, "losses.csv"), losses)
    with open(flags.report, "w") as file:
        file.write(f"y = {slope:.2f} x + {offset:.2f}\n")
    print(f"wrote {flags.report}")


if __name__ == "__main__":
    main()
