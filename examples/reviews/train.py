"""Learns the sentiment of reviews, with embeddings trained from scratch: between-graph, or alone.

    python train.py --data_dir=DATA --log_dir=LOG
    python train.py --ps_hosts=h:1 --worker_hosts=h:2,h:3 --job_name=worker --task_index=0 --data_dir=DATA --log_dir=LOG

With a cluster, from these flags or TF_CONFIG, the embeddings are on the parameter servers, and a worker sends changes
to the rows alone that its batch has. Worker 0 keeps the checkpoints and the event files in the log directory, measures
the accuracy on the validation split now and then, and in the end tests the model and exports it to $MODEL_DIR.
"""

from __future__ import annotations

import argparse
import os

import tensorflow as tf

import reviews_data
import reviews_graph
from sessions import Cluster, cluster_and_task, open_session

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
    parser.add_argument("--steps", type=int, default=300, help="global steps, of all workers together")
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--drop", type=float, default=0.5, help="share of the features that a step leaves out")
    parser.add_argument("--hidden", default="", help="sizes of dense layers before the last, such as 256,16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log_every", type=int, default=10, help="local steps between two lines of the log")
    parser.add_argument("--checkpoint_every", type=int, default=100, help="global steps between two checkpoints")
    return parser.parse_args()


def train(target: str, cluster: Cluster, index: int, flags: argparse.Namespace) -> None:
    """Take part in the training as worker `index` until all steps are done."""
    workers = len(cluster.get("worker", "1"))
    me = f"/job:worker/task:{index}" if cluster else None
    shape, classes = shape_of(flags), reviews_data.classes(flags.data_dir)
    # Worker 0 alone sets up the variables. It reads all of the training split for that, and none of the others.
    weights = reviews_graph.rarity(reviews_data.arrays(flags.data_dir, "train")[0], shape) if index == 0 else None
    tf1.set_random_seed(flags.seed + index)
    with tf1.device(me):
        data = reviews_data.training_data(
            flags.data_dir, flags.batch_size, shard=index, shards=workers, seed=flags.seed
        )
        texts, labels = reviews_graph.next_batch(data)
        held_out = tf1.placeholder(tf.string, [None])
    with tf1.device(tf1.train.replica_device_setter(cluster=cluster, worker_device=me) if cluster else None):
        global_step = tf1.train.get_or_create_global_step()
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=tf1.AUTO_REUSE):
            logits = reviews_graph.logits_of(texts, shape, len(classes), weights, drop=flags.drop)
            classified = tf.argmax(reviews_graph.logits_of(held_out, shape, len(classes)), axis=1)
    with tf1.device(me):
        loss, accuracy = reviews_graph.loss_and_accuracy(logits, labels)
        train_op = reviews_graph.optimizer(flags.learning_rate).minimize(loss, global_step)
    tf1.summary.scalar("loss", loss)
    tf1.summary.scalar("accuracy", accuracy)
    validation = reviews_data.arrays(flags.data_dir, "validation") if index == 0 else ()
    hooks = [tf1.train.StopAtStepHook(last_step=flags.steps)]
    with open_session(target, index, hooks, flags.log_dir, flags.checkpoint_every) as session:
        local_step = 0
        while not session.should_stop():
            _, step, loss_now, accuracy_now = session.run([train_op, global_step, loss, accuracy])
            if local_step % flags.log_every == 0:
                print(f"step {step}/{flags.steps}: loss {loss_now:.4f}, accuracy {accuracy_now:.4f}")
                if index == 0:
                    tf1.summary.FileWriterCache.get(flags.log_dir).flush()  # by itself only every two minutes
            if validation and local_step % (2 * flags.log_every) == 0 and not session.should_stop():
                known = session.run_step_fn(
                    lambda step_context: reviews_graph.share_right(
                        lambda some: step_context.session.run(classified, {held_out: some}), *validation
                    )
                )
                reviews_graph.write_scalar(flags.log_dir, "validation", "accuracy", known, int(step))
                print(f"step {step}/{flags.steps}: validation accuracy {known:.4f}")
            local_step += 1


def shape_of(flags: argparse.Namespace) -> reviews_graph.Shape:
    return reviews_graph.Shape(hidden=tuple(int(size) for size in flags.hidden.split(",") if size))


def is_trained(flags: argparse.Namespace) -> bool:
    """Whether the last checkpoint is there already: then this task was started again after the training."""
    return os.path.exists(os.path.join(flags.log_dir, f"model.ckpt-{flags.steps}.index"))


def test_and_export(flags: argparse.Namespace) -> None:
    """Test the newest checkpoint on the splits that it has not learnt from; export it to $MODEL_DIR, if that is set."""
    with reviews_graph.Trained(flags.log_dir, shape_of(flags), reviews_data.classes(flags.data_dir)) as trained:
        for split in ("validation", "test"):
            texts, labels = reviews_data.arrays(flags.data_dir, split)
            accuracy = reviews_graph.share_right(trained.classify, texts, labels)
            reviews_graph.write_scalar(flags.log_dir, split, "accuracy", accuracy, trained.step)
            around = reviews_data.margin(accuracy, len(labels))
            line = f"{split} accuracy {accuracy:.4f}"
            print(f"{split}: {len(labels)} texts, 95 % interval ±{around:.4f}" if split == "test" else line)
        if os.environ.get("MODEL_DIR"):
            trained.export(os.environ["MODEL_DIR"])
    print(f"test accuracy {accuracy:.4f}")


def main() -> None:
    flags = parse_flags()
    cluster, task, index = cluster_and_task(flags.job_name, flags.task_index, flags.ps_hosts, flags.worker_hosts)
    server = tf1.train.Server(cluster, job_name=task, task_index=index) if cluster else None
    if task == "ps":
        print(f"serves variables at {cluster['ps'][index]}")
        server.join()  # for ever: a parameter server ends when it is stopped
    if not is_trained(flags):
        train(server.target if server else "", cluster, index, flags)
    if index == 0:
        test_and_export(flags)


if __name__ == "__main__":
    main()
