"""The program of an `in_graph` task: the TensorFlow server that TF_CONFIG describes, until it is stopped.

It stands alone: it imports TensorFlow in the task's own Python and nothing of the runner, and this folder holds nothing
that a package could import by mistake. Which version of TensorFlow, if it has `tensorflow.compat.v1` (1.13 and newer).
"""

from __future__ import annotations

import json
import os
import sys


def main() -> int:
    """Serve. Returns only where TensorFlow's server ended by itself, which is a failure."""
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    job, index = str(task["type"]), int(task["index"])
    import tensorflow.compat.v1 as tf

    server = tf.train.Server(cluster, job_name=job, task_index=index)
    place = (tf.__version__, cluster[job][index], job, index)
    sys.stdout.write("TensorFlow %s serves at grpc://%s as /job:%s/task:%d.\n" % place)
    server.join()
    sys.stderr.write("The server ended by itself.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
