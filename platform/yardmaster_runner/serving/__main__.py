"""`python -m yardmaster_runner.serving`: listen behind the gate, load the model, serve until stopped.

It answers before the model is loaded, so that it can be seen that it loads. Exits with `BAD_DATA` and one line
where the model cannot be served: no restart helps.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from yardmaster_runner import own_programs
from yardmaster_runner.gate import VARIABLE as SOCKET
from yardmaster_runner.own_programs import say
from yardmaster_runner.reasons import BAD_DATA
from yardmaster_runner.serving.api import Api
from yardmaster_runner.serving.http_server import Server
from yardmaster_runner.serving.loading import NotLoaded, load
from yardmaster_runner.signal_event import SignalEvent

TIME_TO_DRAIN = 5.0
"""Seconds that requests have which came before the stop."""
MOST_BODY = 16 << 20
MOST_ANSWER = 64 << 20
"""Of the outputs in memory; their JSON may be larger."""


def main() -> int:
    orders = own_programs.orders()
    path = os.environ.get(SOCKET, "")
    if not path:
        sys.stderr.write("%s must be set.\n" % SOCKET)
        return 2
    name, version = str(orders.options["name"]), str(orders.options["version"])
    api = Api(name, version, MOST_ANSWER)
    server = Server(path, api.answer, MOST_BODY)
    stop = SignalEvent()
    signal.signal(signal.SIGTERM, lambda *_: stop.set() if api.loaded is not None else os._exit(128 + signal.SIGTERM))
    threading.Thread(target=server.serve_forever, daemon=True, name="http").start()
    say("Listening. Loading the model.")
    begun = time.monotonic()
    try:
        api.loaded = load(orders.data_dir)
    except NotLoaded as error:
        sys.stderr.write("The model cannot be served: %s.\n" % str(error).rstrip("."))
        return BAD_DATA
    words = (api.loaded.kind, name, version, time.monotonic() - begun)
    say("Serving the %s %s, version %s; loading took %.1f s." % words)
    for one in api.loaded.signatures.values():
        say("Signature %s: %s" % (one.name, one.words()))
    stop.wait()
    server.shutdown()
    server.drain(TIME_TO_DRAIN)
    return 128 + signal.SIGTERM


if __name__ == "__main__":
    sys.exit(main())
