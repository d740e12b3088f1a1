"""`python -m yardmaster_runner.workbench.spark_history`: Spark's history server over the event logs in the data folder,
behind the gate, till stopped.

It shows applications that have ended, and those that run as far as their logs have come. Spark reads one flat folder:
`history_folder` makes that of the data folder. It listens on a port of loopback and knows nothing of the path below
which the portal has it, so `history_pages` passes requests on.

Not here: how the files come into the data folder (`event_sync`, in the runner), and who may look (the portal).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Dict, List

from yardmaster_runner import own_programs
from yardmaster_runner.gate import VARIABLE as SOCKET
from yardmaster_runner.own_programs import say, stopping
from yardmaster_runner.reasons import NO_SPARK
from yardmaster_runner.spark.cluster import DAEMONS, LOCAL_IP, LOGGING
from yardmaster_runner.spark.installed import Installed, NotInstalled, find
from yardmaster_runner.spark.paths import without_runner
from yardmaster_runner.workbench.history_folder import mirror
from yardmaster_runner.workbench.history_pages import HistoryPages
from yardmaster_runner.workbench.wsgi_server import Server

LOOK_EVERY = 1.0
PATIENCE = 120.0
"""Seconds in which the history server answers, on a machine that is busy."""
LOOPBACK = "127.0.0.1"
PREFIX = "APPLICATION_WEB_PROXY_BASE"
"""Where Spark's pages are, as their links have it."""
SETTINGS = """spark.history.fs.logDirectory file://%s
spark.history.fs.update.interval 2s
spark.history.fs.safemodeCheck.interval 60s
spark.history.ui.port %d
spark.port.maxRetries 0
spark.history.retainedApplications 5
spark.ui.killEnabled false
"""


def main() -> int:
    begun = time.monotonic()
    path = os.environ.get(SOCKET, "")
    if not path:
        sys.stderr.write("%s must be set.\n" % SOCKET)
        return 2
    orders = own_programs.orders()
    stop = stopping()
    say("Starting Spark's history server.")
    shown = orders.data_dir.rstrip(os.sep) + "-shown"
    prefix = "/w/%s" % orders.options["session"]
    try:
        port = _free_port()
        process = _started(find(os.environ), shown, port, prefix)
    except (NotInstalled, OSError) as error:
        sys.stderr.write("yardmaster: %s\n" % error)
        return NO_SPARK if isinstance(error, NotInstalled) else 1
    try:
        mirror(orders.data_dir, shown)
        if not _answers(process, port, stop):
            return 128 + signal.SIGTERM if stop.is_set() else 1
        server = Server(path, HistoryPages(port, prefix))
        threading.Thread(target=server.serve_forever, name="pages", daemon=True).start()
        say("Spark's history server answers; starting took %.1f s." % (time.monotonic() - begun))
        while process.poll() is None and not stop.wait(LOOK_EVERY):
            mirror(orders.data_dir, shown)
    finally:
        process.terminate()
        process.wait()
    say("Spark's history server is stopped." if stop.is_set() else "Spark's history server has ended.")
    return 128 + signal.SIGTERM if stop.is_set() else 1


def _started(installed: Installed, shown: str, port: int, prefix: str) -> "subprocess.Popen[bytes]":
    """Raises `OSError`."""
    conf = shown + "-conf"
    for folder in (shown, conf):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    settings = os.path.join(conf, "history.conf")
    for name, text in ((settings, SETTINGS % (shown, port)), (os.path.join(conf, "log4j2.properties"), LOGGING)):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    environment: Dict[str, str] = {
        **without_runner(os.environ, installed.path),
        **DAEMONS,
        **installed.variables(conf, os.environ),
        "SPARK_CONF_DIR": conf,
        "SPARK_DAEMON_MEMORY": "512m",
        LOCAL_IP: LOOPBACK,
        PREFIX: prefix,
    }
    name = "org.apache.spark.deploy.history.HistoryServer"
    command: List[str] = [*installed.spark_class, name, "--properties-file", settings]
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])


def _answers(process: "subprocess.Popen[bytes]", port: int, stop: threading.Event) -> bool:
    """Whether it does before it ends, or is stopped."""
    until = time.monotonic() + PATIENCE
    while process.poll() is None and not stop.wait(0.1):
        try:
            socket.create_connection((LOOPBACK, port), timeout=1.0).close()
            return True
        except OSError:
            if time.monotonic() > until:
                sys.stderr.write("yardmaster: Spark's history server does not answer.\n")
                return False
    return False


if __name__ == "__main__":
    sys.exit(main())
