"""Between-graph replication, the classic way: parameter servers hold the variables, every worker builds its own graph.

    python between_graph.py --ps_hosts=h:1 --worker_hosts=h:2,h:3 --job_name=worker --task_index=0 \\
        --data_dir=DATA --log_dir=LOG

Without the four cluster flags the cluster is read from TF_CONFIG. Workers train asynchronously; with `--sync` they
average their gradients each step. Worker 0 keeps the checkpoints and the event files in the log directory, and in the
end tests the model and exports it to $MODEL_DIR.
"""

from __future__ import annotations

import argparse
import json
import os
import time

import tensorflow as tf

import digits_data
import digits_graph
from replication import QuickWorkerSession, Synchronous

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)  # every call of the classic API would print that it is deprecated


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ps_hosts", default="", help="host:port,host:port")
    parser.add_argument("--worker_hosts", default="", help="host:port,host:port")
    parser.add_argument("--job_name", default="", choices=["", "ps", "worker"])
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--log_dir", required=True)
    parser.add_argument("--sync", action="store_true", help="average the gradients of all workers")
    parser.add_argument("--steps", type=int, default=600, help="global steps, of all workers together")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.003)
    parser.add_argument("--log_every", type=int, default=20, help="local steps between two lines of the log")
    parser.add_argument("--checkpoint_every", type=int, default=100, help="global steps between two checkpoints")
    parser.add_argument("--step_sleep", type=float, default=0.0, help="seconds of simulated computation per step")
    return parser.parse_args()


def cluster_and_task(flags: argparse.Namespace) -> tuple[dict[str, list[str]], str, int]:
    """Who is there and which of them this process is. A chief, where there is one, becomes worker 0."""
    if flags.job_name:
        hosts = {"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")}
        return hosts, flags.job_name, flags.task_index
    if "TF_CONFIG" not in os.environ:
        raise SystemExit("no cluster: give --ps_hosts, --worker_hosts, --job_name and --task_index, or set TF_CONFIG")
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
    chief = cluster.get("chief", [])
    hosts = {"ps": cluster["ps"], "worker": chief + cluster["worker"]}
    return hosts, "ps" if task == "ps" else "worker", index + len(chief) if task == "worker" else index


def open_session(
    server: tf1.train.Server, index: int, hooks: list, flags: argparse.Namespace
) -> tf1.train.MonitoredSession:
    # Without the filters a restarted worker 0 waits for all others, also for those that have already finished.
    config = tf1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
    if index > 0:
        return tf1.train.MonitoredSession(QuickWorkerSession(server.target, config), hooks)
    # By itself every parameter server would write its part of a checkpoint, to a disk that on a cluster is another one.
    with tf1.device("/job:worker/task:0"):
        saver = tf1.train.Saver(sharded=False)
    return tf1.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=True,
        scaffold=tf1.train.Scaffold(saver=saver),
        checkpoint_dir=flags.log_dir,  # it goes on from the newest checkpoint there
        save_checkpoint_steps=flags.checkpoint_every,
        save_summaries_steps=10,
        hooks=hooks,
        config=config,
        stop_grace_period_secs=1,  # `--sync` keeps a thread that waits for gradients, which nobody sends at the end
    )


def train(server: tf1.train.Server, cluster: dict[str, list[str]], index: int, flags: argparse.Namespace) -> None:
    workers, me = len(cluster["worker"]), f"/job:worker/task:{index}"
    hooks = [tf1.train.StopAtStepHook(last_step=flags.steps)]
    with tf1.device(me):
        data = digits_data.training_data(flags.data_dir, flags.batch_size, shard=index, shards=workers)
        images, labels = digits_graph.next_batch(data)
    with tf1.device(tf1.train.replica_device_setter(cluster=cluster, worker_device=me)):  # variables live on the ps
        global_step = tf1.train.get_or_create_global_step()
        logits = digits_graph.logits_of(images)
    with tf1.device(me):
        loss, accuracy = digits_graph.loss_and_accuracy(logits, labels)
        optimizer = tf1.train.AdamOptimizer(flags.learning_rate)
        if flags.sync:
            optimizer = tf1.train.SyncReplicasOptimizer(optimizer, workers, workers)
        train_op = optimizer.minimize(loss, global_step)
    if flags.sync:
        hooks.append(Synchronous(optimizer, workers, is_chief=index == 0))
    tf1.summary.scalar("loss", loss)
    tf1.summary.scalar("accuracy", accuracy)
    with open_session(server, index, hooks, flags) as session:
        local_step = 0
        while not session.should_stop():
            time.sleep(flags.step_sleep)
            _, step, loss_now, accuracy_now = session.run([train_op, global_step, loss, accuracy])
            if local_step % flags.log_every == 0:
                print(f"step {step}/{flags.steps}: loss {loss_now:.4f}, accuracy {accuracy_now:.4f}")
                if index == 0:
                    tf1.summary.FileWriterCache.get(flags.log_dir).flush()  # by itself only every two minutes
            local_step += 1


def is_trained(flags: argparse.Namespace) -> bool:
    """Whether the last checkpoint is there already: then this task was started again after the training."""
    return os.path.exists(os.path.join(flags.log_dir, f"model.ckpt-{flags.steps}.index"))


def main() -> None:
    flags = parse_flags()
    cluster, task, index = cluster_and_task(flags)
    server = tf1.train.Server(cluster, job_name=task, task_index=index)
    if task == "ps":
        print(f"serves variables at {cluster['ps'][index]}")
        server.join()  # for ever: a parameter server ends when it is stopped
    if not is_trained(flags):
        train(server, cluster, index, flags)
    if index == 0:
        digits_graph.evaluate_and_export(flags.data_dir, flags.log_dir)


if __name__ == "__main__":
    main()
