"""`python -m yardmaster_runner.probe`: exit 0 where tasks on this machine can be kept to loopback, else 1 and why not.

It does all that it takes, with a script that listens on every network unless it is kept from it.
"""

from __future__ import annotations

import os
import sys

from yardmaster_runner.narrower import Listening
from yardmaster_runner.script import Script

LISTEN = """
import _socket
one = _socket.socket()
one.bind(("0.0.0.0", 0))
one.listen()
raise SystemExit(one.getsockname()[0] != "127.0.0.1")
"""


def main() -> int:
    try:
        script = Script.start(
            [sys.executable, "-I", "-S", "-c", LISTEN], dict(os.environ), "/", 2, Listening(lambda text: None)
        )
    except OSError as error:
        sys.stderr.write("yardmaster: %s\n" % error)
        return 1
    return 1 if script.wait() else 0


if __name__ == "__main__":
    sys.exit(main())
