"""A worker that outlives its broker.

When the connection to the broker is lost, kombu closes it, and only then wants to acknowledge through it what is still
being worked on, or to give it back; either ends the worker with an AttributeError. Nothing is lost by not trying: the
broker has these messages on its own list or was started anew without any, and the sweep replaces what is missing.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis


class LossProofQoS(redis.QoS):
    """Speaks to the broker as ever, as long as there is a connection to do it through."""

    def ack(self, delivery_tag: str) -> None:
        if not self._is_cut_off:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if not self._is_cut_off:
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]

    def restore_unacked_once(self, stderr: Any = None) -> None:
        if self._is_cut_off:
            self._on_collect.cancel()
        else:
            super().restore_unacked_once(stderr)  # type: ignore[no-untyped-call]

    @property
    def _is_cut_off(self) -> bool:
        connection = self.channel.connection
        return connection is None or connection.client is None


def survive_broker_loss() -> None:
    """Have every connection of this process do so."""
    redis.Channel.QoS = LossProofQoS
