"""Everything before the script: the order, the folders, code and inputs, the checkpoint to continue from."""

from __future__ import annotations

import errno
import os
import shutil
import time

from yardmaster_runner import own_python
from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.cache import inside
from yardmaster_runner.checkpoints import has_checkpoint, put_back
from yardmaster_runner.exits import PORTAL_UNREACHABLE, STAGE_IN_FAILED, TOKEN_REFUSED, CannotRun
from yardmaster_runner.launch import Folders
from yardmaster_runner.order import Bundle, Order, read_order
from yardmaster_runner.patience import Backoff
from yardmaster_runner.settings import Settings
from yardmaster_runner.stage import Stager
from yardmaster_runner.task_api import TaskApi

ORDER_PATIENCE = 600.0


class Preparation:
    """Its steps raise `CannotRun`, with words for the user, and may be interrupted anywhere."""

    def __init__(self, settings: Settings, api: TaskApi, folders: Folders) -> None:
        self._settings = settings
        self._api = api
        self._folders = folders

    def get_order(self) -> Order:
        """What the portal wants of this task; a portal that is away is waited for."""
        backoff, until = Backoff(), time.monotonic() + ORDER_PATIENCE
        while True:
            try:
                return read_order(self._api.order())
            except PortalRefused as error:
                raise CannotRun(TOKEN_REFUSED, "TokenRefused", str(error)) from error
            except PortalRejected as error:
                raise CannotRun(STAGE_IN_FAILED, "StageInFailed", str(error)) from error
            except PortalAway as error:
                if time.monotonic() >= until:
                    message = "no answer from %s for 10 minutes: %s" % (self._settings.url, error)
                    raise CannotRun(PORTAL_UNREACHABLE, "PortalUnreachable", message) from error
                time.sleep(max(backoff.next(), min(error.retry_after, 15.0)))

    def make_work_dir(self) -> None:
        try:
            os.makedirs(self._settings.work_dir, exist_ok=True)
        except OSError as error:
            raise _failed(error) from error

    def stage(self, order: Order) -> None:
        """Afterwards the script can be started."""
        try:
            if self._settings.has_own_python:
                own_python.make(self._settings.work_dir)
            self._place_all(order)
        except OSError as error:
            raise _failed(error) from error
        if order.code is not None:
            self._find_script(order.code, order.entry_point)
        if shutil.which(self._settings.python) is None:
            message = "YARDMASTER_PYTHON is %s, which cannot be run" % self._settings.python
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message)

    def _find_script(self, code: Bundle, entry_point: str) -> None:
        if not os.path.isfile(inside(self._folders.code, entry_point)):
            there = ", ".join(sorted(file.path for file in code.files)[:10])
            message = "the entry point %s is not in the code, which has: %s" % (entry_point, there or "nothing")
            raise CannotRun(STAGE_IN_FAILED, "ScriptNotFound", message)

    def _place_all(self, order: Order) -> None:
        for folder in (self._settings.cache_dir, *vars(self._folders).values()):
            os.makedirs(folder, exist_ok=True)
        stager = Stager(self._api.portal.hosts, self._settings.cache_dir, self.get_order)
        if order.code is not None:
            stager.place(order.code, self._folders.code, is_copied=True)
        for bundle in order.inputs:
            stager.place(bundle, self._folders.of_input(bundle.name), is_copied=False)
        if order.checkpoint is not None and self._settings.role != "ps":
            self._restore(stager, order.checkpoint)

    def _restore(self, stager: Stager, checkpoint: Bundle) -> None:
        """Into a log directory that has none: what is there is newer than what the portal has."""
        if has_checkpoint(self._folders.log):
            return
        staged = os.path.join(self._settings.work_dir, "restore")
        stager.place(checkpoint, staged, is_copied=False)
        put_back(staged, self._folders.log, [file.path for file in checkpoint.files])
        shutil.rmtree(staged, ignore_errors=True)


def _failed(error: OSError) -> CannotRun:
    reason = "DiskFull" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "StageInFailed"
    return CannotRun(STAGE_IN_FAILED, reason, "staging failed: %s" % error)
