"""A task's life from the order to its end: stage in, run the script, keep what it made, tell the portal, in that order.

Every part is its own module; here is only who comes when, and what ends whom.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from types import FrameType
from typing import Callable, Mapping, Optional

from yardmaster_runner import launch
from yardmaster_runner.backoff import Backoff
from yardmaster_runner.checkpoints import has_checkpoint, put_back
from yardmaster_runner.events import EventFiles
from yardmaster_runner.exits import (
    PORTAL_UNREACHABLE,
    STAGE_IN_FAILED,
    TOKEN_REFUSED,
    CannotRun,
    Ending,
    StoppedEarly,
    note,
    write_ending,
)
from yardmaster_runner.intake import Intake, open_pipe
from yardmaster_runner.keeper import CheckpointKeeper, keep_model
from yardmaster_runner.observer import Observer
from yardmaster_runner.order import Order, read_order
from yardmaster_runner.portal import Portal, PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.processes import adopt_orphans
from yardmaster_runner.progress import Progress
from yardmaster_runner.reasons import explain_end, memory_kills
from yardmaster_runner.reporter import Facts, Reporter
from yardmaster_runner.script import Script
from yardmaster_runner.settings import Settings
from yardmaster_runner.shipper import Shipper, ShipperThread
from yardmaster_runner.spool import Spool, SpoolInUse
from yardmaster_runner.stage import Stager
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader
