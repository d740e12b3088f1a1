"""The cluster that a task finds itself in, and sessions in it that survive the end and the restart of others.

Not here: what is trained (`train`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import tensorflow as tf

tf1 = tf.compat.v1
Cluster = dict[str, list[str]]


def cluster_and_task(job_name: str, task_index: int, ps_hosts: str, worker_hosts: str) -> tuple[Cluster, str, int]:
    """Who is there and which of them this process is, from the flags or TF_CONFIG. A chief, where there is one, becomes
    worker 0. Without a cluster it is worker 0, alone."""
    if job_name:
        return {"ps": ps_hosts.split(","), "worker": worker_hosts.split(",")}, job_name, task_index
    if "TF_CONFIG" not in os.environ:
        return {}, "worker", 0
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
    chief = cluster.get("chief", [])
    hosts = {"ps": cluster.get("ps", []), "worker": chief + cluster.get("worker", [])}
    if not hosts["ps"]:
        raise SystemExit("a cluster without parameter servers: give one, or train alone without TF_CONFIG")
    return hosts, "ps" if task == "ps" else "worker", index + len(chief) if task == "worker" else index


def open_session(
    target: str, index: int, hooks: Sequence[tf1.train.SessionRunHook], log_dir: str, checkpoint_every: int
) -> tf1.train.MonitoredSession:
    """Worker 0's session keeps checkpoints and event files in `log_dir` and goes on from the newest checkpoint there.
    `target` is empty without a cluster."""
    # Without the filters a restarted worker 0 waits for all others, also for those that have already finished.
    filters = ["/job:ps", f"/job:worker/task:{index}"] if target else []
    config = tf1.ConfigProto(device_filters=filters)
    if index > 0:
        return tf1.train.MonitoredSession(_QuickWorkerSession(target, config), hooks)
    # By itself every parameter server would write its part of a checkpoint, to a disk that on a cluster is another one.
    with tf1.device("/job:worker/task:0" if target else None):
        saver = tf1.train.Saver(sharded=False)
    return tf1.train.MonitoredTrainingSession(
        master=target,
        is_chief=True,
        scaffold=tf1.train.Scaffold(saver=saver),
        checkpoint_dir=log_dir,
        save_checkpoint_steps=checkpoint_every,
        save_summaries_steps=10,
        hooks=hooks,
        config=config,
    )


class _QuickWorkerSession(tf1.train.SessionCreator):
    """Waits until worker 0 has set up the model. `MonitoredTrainingSession` would look for that only every 30 s."""

    def __init__(self, target: str, config: tf1.ConfigProto) -> None:
        self._target, self._config, self._scaffold = target, config, tf1.train.Scaffold()

    def create_session(self) -> tf1.Session:
        ops = self._scaffold.finalize()
        manager = tf1.train.SessionManager(
            local_init_op=ops.local_init_op,
            ready_op=ops.ready_op,
            ready_for_local_init_op=ops.ready_for_local_init_op,
            recovery_wait_secs=0.5,
        )
        return manager.wait_for_session(self._target, self._config)
