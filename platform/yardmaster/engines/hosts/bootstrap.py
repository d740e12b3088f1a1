"""Runs on a machine before anything of ours is there: `python3 -c <this file> FOLDER DIGEST SIZE`.

It says in a line what it found, reads the archive from its standard input where that is not there yet, and becomes the
agent, which keeps the same pipes. It must run on any Python 3, so that an old one is told of.
"""

import json
import os
import shutil
import sys


def say(**what: object) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())


def unpack(target: str, size: int) -> None:
    """Read `size` bytes, not one more: the agent reads on. In place in one step; another who was quicker is right."""
    import io
    import tarfile

    data = b""
    while len(data) < size:
        part = os.read(0, min(size - len(data), 1 << 16))
        if not part:
            raise SystemExit(1)
        data += part
    draft = "{}.{}".format(target, os.getpid())
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            archive.extractall(draft)
        os.rename(draft, target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not os.path.isdir(target):
            raise


def main(folder: str, digest: str, size: str) -> None:
    if sys.version_info < (3, 11):
        say(problem="python", version=sys.version.split()[0])
        return
    folder = os.path.abspath(os.path.expanduser(folder))
    code = os.path.join(folder, "code")
    target = os.path.join(code, digest)
    try:
        os.makedirs(code, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        is_there = os.path.isdir(target)
        say(has=is_there, version=sys.version.split()[0])
        if not is_there:
            unpack(target, int(size))
    except OSError as error:
        say(problem="folder", folder=folder, error=str(error))
        return
    os.environ.pop("PYTHONHOME", None)
    os.environ["PYTHONPATH"] = target
    # -S: nothing that is installed is needed. -P: nothing of the folder in which we are is imported.
    os.execv(sys.executable, [sys.executable, "-S", "-P", "-m", "yardmaster.engines.hosts.agent", folder])


if __name__ == "__main__":
    main(*sys.argv[1:4])
