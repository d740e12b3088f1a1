"""A training that takes a second: gradient descent with momentum over a narrow valley, whose loss is a scalar.

    python train.py --lr=0.1 --momentum=0.5 --log_dir=logs

Which learning rate and momentum come lowest is for a sweep to find out; a rate that is too high diverges.
"""

from __future__ import annotations

import argparse
import math
import time

from scalars import Scalars


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of each step")
    parser.add_argument("--log_dir", default="logs")
    flags = parser.parse_args()
    scalars = Scalars(flags.log_dir)
    x, y, along, across = 1.0, 1.0, 0.0, 0.0
    loss = math.inf
    for step in range(1, flags.steps + 1):
        loss = min(0.5 * (x * x + 30 * y * y), 1e30)
        scalars.write("loss", loss, step)
        along, across = flags.momentum * along - flags.lr * x, flags.momentum * across - flags.lr * 30 * y
        x, y = max(-1e9, min(1e9, x + along)), max(-1e9, min(1e9, y + across))
        time.sleep(flags.pause)
    scalars.close()
    print(f"loss {loss:.6g}", flush=True)


if __name__ == "__main__":
    main()
