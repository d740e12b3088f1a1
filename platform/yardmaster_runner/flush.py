"""`python -m yardmaster_runner.flush WORK_DIR`: ship what the spool of a dead runner still holds, then exit.

Exit 0: everything is at the portal. 1: something is left (the portal did not answer, or another process has the spool).
The address comes from the environment as for the runner, else from the note the runner left beside its spool.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Dict, List, Mapping, Optional

from yardmaster_runner.exits import note
from yardmaster_runner.patience import Haste, Patience
from yardmaster_runner.portal import Portal
from yardmaster_runner.settings import Settings
from yardmaster_runner.shipper import ShipperThread
from yardmaster_runner.spool import Spool
from yardmaster_runner.spool_folder import SpoolInUse
from yardmaster_runner.task_api import TaskApi

ADDRESS = {
    "url": "YARDMASTER_URL",
    "token_file": "YARDMASTER_TOKEN_FILE",
    "role": "YARDMASTER_ROLE",
    "index": "YARDMASTER_INDEX",
}
UNBOUNDED = 1 << 62


def remember_address(settings: Settings) -> None:
    """Leave beside the spool where it is to be shipped: the token's place, never the token."""
    address = {name: str(getattr(settings, name)) for name in ADDRESS}
    try:
        with open(os.path.join(settings.spool_dir, "address.json"), "w", encoding="utf-8") as file:
            json.dump(address, file)
    except OSError as error:
        note("the spool's address is not noted: %s" % error)


def flush(work_dir: str, environment: Mapping[str, str], seconds: float) -> bool:
    """Whether everything was shipped. Gives up when the portal has not taken anything for `seconds`."""
    spool_dir = os.path.join(work_dir, "spool")
    if not os.path.isdir(spool_dir):
        return True
    address = _address(spool_dir, environment)
    spool = Spool(spool_dir, UNBOUNDED, lock_wait=0.0)
    try:
        if spool.waiting_lines == 0:
            return True
        api = TaskApi(Portal(address["url"], address["token_file"]), address["role"], int(address["index"]))
        shipping = ShipperThread(spool, api, Patience(seconds, Haste()))
        shipping.no_more_lines()
        shipping.run()
        if not shipping.shipper.is_done:
            note("%d lines are left: %s" % (spool.waiting_lines, shipping.shipper.trouble))
        return shipping.shipper.is_done
    finally:
        spool.close()


def _address(spool_dir: str, environment: Mapping[str, str]) -> Dict[str, str]:
    address: Dict[str, str] = {}
    path = os.path.join(spool_dir, "address.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            address.update({str(k): str(v) for k, v in json.load(file).items()})
    address.update({name: environment[variable] for name, variable in ADDRESS.items() if environment.get(variable)})
    missing = [variable for name, variable in ADDRESS.items() if not address.get(name)]
    if missing:
        raise ValueError("%s must be set: %s does not say" % (", ".join(missing), path))
    return address


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m yardmaster_runner.flush", description=__doc__.split("\n")[0])
    parser.add_argument("work_dir")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="how long to wait for a portal that does not answer"
    )
    chosen = parser.parse_args(arguments)
    try:
        return 0 if flush(chosen.work_dir, os.environ, chosen.seconds) else 1
    except (SpoolInUse, OSError, ValueError) as error:
        note(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
