# Runs a server that never ends by itself until all who decide have said that they are done:
# until_done.py SECONDS TASK,... COMMAND...
# Who has said so is kept in a file: the server may be started again before the others are done.
import os
import signal
import socket
import subprocess
import sys
import threading
import time

PORT, KEPT = 2223, os.path.join(os.environ["HOME"], "done")
seconds, awaited, command = float(sys.argv[1]), set(sys.argv[2].split(",")), sys.argv[3:]
server = subprocess.Popen(command)
signal.signal(signal.SIGTERM, lambda *_: server.terminate())


def listen() -> None:
    with socket.create_server(("", PORT)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                try:
                    task = connection.makefile("rb").readline(200).decode("ascii", "replace").strip()
                    if task in awaited:
                        with open(KEPT, "a") as file:
                            file.write(task + "\n")
                        connection.sendall(b"ok")
                except OSError:
                    continue


def all_done() -> bool:
    if not os.path.exists(KEPT):
        return False
    with open(KEPT) as file:
        return awaited <= set(file.read().split())


def ends(within: float) -> bool:
    try:
        server.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


threading.Thread(target=listen, daemon=True).start()
since = None
while not ends(0.5):
    since = since or (time.monotonic() if all_done() else None)
    if since and time.monotonic() - since >= seconds:
        print("The training is over: this server ends.", flush=True)  # noqa: T201 (into the log of the pod)
        server.terminate()
        if not ends(10):
            server.kill()
        sys.exit(0)
sys.exit(server.returncode if server.returncode >= 0 else 128 - server.returncode)
