"""`python -m yardmaster_runner.workbench.tensorboard`: TensorBoard over the data folder, behind the gate, till stopped.

It runs in this process, without TensorFlow: TensorBoard has a stand-in for the little that it needs of it, and starts
in half a second and 70 MB where TensorFlow takes three seconds and 700 MB. What does not work without TensorFlow is
Debugger V2, whose data are no event files. How files are read:
`event_reading`; how requests are answered: `wsgi_server`; how an open page shows new steps: `live_page`.

Not here: how the files come into the folder (`event_sync`, in the runner), and who may look (the portal).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, Callable, Dict

from yardmaster_runner import own_programs
from yardmaster_runner.gate import VARIABLE as SOCKET
from yardmaster_runner.own_programs import say, stopping
from yardmaster_runner.workbench import event_reading, live_page
from yardmaster_runner.workbench.wsgi_server import Server

RELOAD_EVERY = 1.0
"""Seconds between two looks at the files. A look at files that have not grown costs a few system calls each."""
RELOAD_THREADS = 2
SAMPLES = {"images": 10, "audio": 10, "histograms": 200, "pr_curves": 50, "text": 50, "mesh": 5}
"""Of each tag, how many are kept in memory: what is large is kept in small numbers. Scalars: 1,000."""
ALWAYS_ACTIVE = -1
"""All files are looked at again, whatever the times of their events: a file may come in parts, long after it was
written, and scripts write times of their own. A file without news costs microseconds, and is not kept open."""


def flags_for(session: str, folder: str) -> Dict[str, Any]:
    """The flags of TensorBoard that differ from their defaults."""
    return {
        "logdir": folder,
        "path_prefix": "/w/" + session,
        "load_fast": "false",  # the data server is a program of its own that listens on a port
        "reload_interval": RELOAD_EVERY,
        "reload_multifile": True,
        "reload_multifile_inactive_secs": ALWAYS_ACTIVE,
        "max_reload_threads": RELOAD_THREADS,
        "samples_per_plugin": SAMPLES,
        "window_title": "TensorBoard",
    }


def main() -> int:
    begun = time.monotonic()
    path = os.environ.get(SOCKET, "")
    if not path:
        sys.stderr.write("%s must be set.\n" % SOCKET)
        return 2
    orders = own_programs.orders()
    stop = stopping()
    say("Starting TensorBoard.")
    try:
        event_reading.install()
        from tensorboard import program, version
    except ImportError as error:
        sys.stderr.write("TensorBoard cannot be imported: %s. Choose an image that has it.\n" % error)
        return 1
    board = program.TensorBoard(server_class=_server_at(path))
    board.configure(**flags_for(str(orders.options["session"]), orders.data_dir))
    board.launch()
    say("TensorBoard %s answers; starting took %.1f s." % (version.VERSION, time.monotonic() - begun))
    stop.wait()
    say("TensorBoard is stopped.")
    return 128 + signal.SIGTERM


def _server_at(path: str) -> Callable[[Any, Any], Server]:
    """What TensorBoard makes its server with."""

    class BoardServer(Server):
        def get_url(self) -> str:
            return "unix://" + path

    def made(application: live_page.Application, flags: Any) -> Server:
        return BoardServer(path, live_page.live(application, flags.path_prefix, event_reading.events_read))

    return made


if __name__ == "__main__":
    sys.exit(main())
