"""Two things that between-graph training needs and `MonitoredTrainingSession` lacks: workers that start as soon as
they can, and synchronous workers that all end.

Not here: the training itself (`between_graph`).
"""

from __future__ import annotations

import tensorflow as tf

tf1 = tf.compat.v1


class QuickWorkerSession(tf1.train.SessionCreator):
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


class Synchronous(tf1.train.SessionRunHook):
    """For `SyncReplicasOptimizer`, in place of its own hook.

    After each step a worker waits for a token. Worker 0 hands them out, from a queue on a parameter server, once it has
    everybody's gradients. The optimizer's own hook closes that queue when worker 0 stops, and then neither a slower
    worker nor a restarted worker 0 can go on. Here the queue stays open, and who ends leaves a token for everybody.
    """

    def __init__(self, optimizer: tf1.train.SyncReplicasOptimizer, workers: int, *, is_chief: bool) -> None:
        self._optimizer, self._workers, self._is_chief = optimizer, workers, is_chief

    def begin(self) -> None:
        optimizer = self._optimizer
        optimizer.ready_for_local_init_op.mark_used()  # both kinds of session have waited for that already
        self._initialize = optimizer.chief_init_op if self._is_chief else optimizer.local_step_init_op
        self._add_tokens = optimizer.get_init_tokens_op(self._workers)
        updates = optimizer.get_chief_queue_runner()
        self._updates = tf1.train.QueueRunner(
            updates.queue,
            updates.enqueue_ops,
            close_op=tf.no_op(),
            cancel_op=tf.no_op(),
            queue_closed_exception_types=(tf.errors.CancelledError,),  # the end of the session is no failure
        )

    def after_create_session(self, session: tf1.Session, coord: tf1.train.Coordinator) -> None:
        session.run(self._initialize)
        if self._is_chief:
            session.run(self._add_tokens)
            self._updates.create_threads(session, coord, daemon=True, start=True)

    def end(self, session: tf1.Session) -> None:
        session.run(self._add_tokens)
