"""How the portal reaches a cluster: a kubeconfig, or the account of the pod that it runs in itself.

Library errors end here, as `Misconfigured`. Nothing is sent.
"""

from __future__ import annotations

import socket

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from yardmaster.errors import Misconfigured

_CONNECTIONS = 32
"""Kept open: as many as threads that ask at once."""
_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A watch whose other end is gone without a word is found out within 20 seconds, where the system has these options."""


def connect(kubeconfig: str = "", context: str = "") -> client.ApiClient:
    """A client for the cluster that `kubeconfig` names; without one, for the cluster that we run in, else for the one
    of the usual kubeconfig. Raises `Misconfigured`."""
    chosen = client.Configuration()
    try:
        if kubeconfig or not _is_in_cluster():
            config.load_kube_config(kubeconfig or None, context or None, client_configuration=chosen)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(client_configuration=chosen)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, KeyError, TypeError) as error:
        raise Misconfigured(
            f"The Kubernetes engine's kubeconfig cannot be used: {error}",
            remedy="Set YARDMASTER_KUBECONFIG to a kubeconfig that kubectl can use.",
        ) from error
    return _client(chosen)


def connect_to(url: str) -> client.ApiClient:
    """A client for an API server that asks for no credentials: `kubectl proxy`, or a test's."""
    return _client(client.Configuration(host=url))


def _client(chosen: client.Configuration) -> client.ApiClient:
    # One more try where a kept-alive connection was closed meanwhile; every other retry is the portal's.
    chosen.retries = urllib3.Retry(total=1, redirect=0, status=0)
    chosen.connection_pool_maxsize = _CONNECTIONS
    chosen.socket_options = [
        *urllib3.connection.HTTPConnection.default_socket_options,
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *((socket.IPPROTO_TCP, getattr(socket, one), value) for one, value in _ALIVE.items() if hasattr(socket, one)),
    ]
    return client.ApiClient(chosen)


def _is_in_cluster() -> bool:
    try:
        config.load_incluster_config(client_configuration=client.Configuration())  # type: ignore[no-untyped-call]
    except ConfigException:
        return False
    return True
