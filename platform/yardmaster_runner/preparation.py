"""Everything before the script: the order, the folders, code and inputs, the checkpoint to continue from."""

from __future__ import annotations

import errno
import os
import shutil
import time
from typing import Any, Callable, Dict, List, Optional, Set

from yardmaster_runner import input_files, offered, own_programs, own_python, program_inputs, secret_files, volume
from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.cache import inside
from yardmaster_runner.checkpoints import has_checkpoint, put_back
from yardmaster_runner.data_service import DataService
from yardmaster_runner.entry_point import files_of_module, module_of
from yardmaster_runner.exits import PORTAL_UNREACHABLE, SECRET_CODES, STAGE_IN_FAILED, TOKEN_REFUSED, CannotRun
from yardmaster_runner.keras_checkpoints import remove_torn_backups
from yardmaster_runner.launch import Folders
from yardmaster_runner.order import Bundle, FilesPage, Order, RemoteFile, read_order, read_page
from yardmaster_runner.patience import Backoff
from yardmaster_runner.settings import Settings
from yardmaster_runner.shard_fetching import ShardFetching
from yardmaster_runner.shard_folder import ShardFolder
from yardmaster_runner.stage import Stager
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.working_folder import States, states_of

ORDER_PATIENCE = 600.0


class Preparation:
    """Its steps raise `CannotRun`, with words for the user, and may be interrupted anywhere."""

    def __init__(self, settings: Settings, api: TaskApi, folders: Folders) -> None:
        self._settings = settings
        self._api = api
        self._folders = folders
        self._data_service: Optional[DataService] = None
        self.staged: States = {}
        """The code, as it was put in its place."""

    def get_order(self) -> Order:
        """What the portal wants of this task; a portal that is away is waited for."""
        order = read_order(self.answered(self._api.order)).of_role(self._settings.role)
        return order.at(self._settings.own_address)

    def get_files(self, version: str, after: str) -> FilesPage:
        """More files of a version that the order names; waits as well."""
        return read_page(self.answered(lambda: self._api.files(version, after)))

    def answered(self, ask: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
        """What the portal answers to this call; one that is away is waited for."""
        backoff, until = Backoff(), time.monotonic() + ORDER_PATIENCE
        while True:
            try:
                return ask()
            except PortalRefused as error:
                raise CannotRun(TOKEN_REFUSED, "TokenRefused", str(error)) from error
            except PortalRejected as error:
                is_secret = error.answer.get("code") in SECRET_CODES
                reason = "SecretUnavailable" if is_secret else "StageInFailed"
                raise CannotRun(STAGE_IN_FAILED, reason, str(error)) from error
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
            secret_files.write(self._folders.secrets, order.secrets)
        except OSError as error:
            raise _failed(error) from error
        if order.code is not None and not order.program and not order.command:
            self._find_script(order.code, order.entry_point)
        if shutil.which(self._settings.python) is None:
            message = "YARDMASTER_PYTHON is %s, which cannot be run" % self._settings.python
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message)

    def _find_script(self, code: Bundle, entry_point: str) -> None:
        module = module_of(entry_point)
        files = files_of_module(module) if module else (entry_point,)
        if not any(os.path.isfile(inside(self._folders.code, one)) for one in files):
            there = ", ".join(sorted(file.path for file in code.files)[:10])
            message = "the entry point %s is not in the code, which has: %s" % (entry_point, there or "nothing")
            raise CannotRun(STAGE_IN_FAILED, "ScriptNotFound", message)

    def _place_all(self, order: Order) -> None:
        if order.publishes:  # of an earlier start, which did not end well
            shutil.rmtree(self._folders.output, ignore_errors=True)
        for folder in (self._settings.cache_dir, *self._folders.of_script):
            os.makedirs(folder, exist_ok=True)
        stager = Stager(self._api.portal.hosts, self._settings.cache_dir, self.get_order, self.get_files)
        if order.code is not None:
            self.staged = _place_code(stager, order.code, self._folders.code)
        for one in order.inputs:
            if one.is_on_volume:
                volume.link(self._settings.data_volume, one.version, self._folders.of_input(one.name))
        who, needed = (self._settings.role, self._settings.index), self._needed_files(order, stager)
        asked_later = []
        for one in order.inputs:
            if one.is_on_volume:
                continue
            rest = input_files.place(stager, order, one, self._folders.of_input(one.name), who, needed)
            asked_later += [rest] if rest is not None else []
        if not order.runs_server:
            self._offer_data(order, stager, asked_later)
        if order.checkpoint is not None and self._settings.role != "ps":
            self._restore(stager, order.checkpoint)

    def _needed_files(self, order: Order, stager: Stager) -> Optional[Set[str]]:
        """Below the data folder; None: all of them."""
        if order.program != program_inputs.PREPARE:
            return None
        listed = program_inputs.listed(order, stager.pages, self._folders.of_input)
        tasks = order.replicas.get(self._settings.role, 1)
        where = own_programs.listing_in(self._settings.work_dir)
        return program_inputs.needed(order.options, listed, where, self._settings.index, tasks)

    def _offer_data(self, order: Order, stager: Stager, asked_later: List[Bundle]) -> None:
        """What the script may import of ours, and the socket where it asks for shards that are not in its folders."""
        if asked_later or offered.machines(self._settings, order):
            folder = ShardFolder(os.path.join(self._settings.cache_dir, "shards"), order.limits.stream_bytes)
            fetching = ShardFetching(folder, stager.fetch)
            self._data_service = DataService(self._settings.work_dir, asked_later, folder, fetching, self._api.agree)
        offered.make(self._settings.work_dir, order)
        folders = {one.name: self._folders.of_input(one.name) for one in order.inputs}
        socket = None if self._data_service is None else self._data_service.address
        partial = {one.name for one in asked_later if not one.is_streamed}
        offered.describe_inputs(self._settings, order, folders, socket, partial)

    def end(self) -> None:
        """The script has ended."""
        if self._data_service is not None:
            self._data_service.close()

    def _restore(self, stager: Stager, checkpoint: Bundle) -> None:
        """Into a log directory that has none: what is there is newer than what the portal has."""
        remove_torn_backups(self._folders.log)
        if has_checkpoint(self._folders.log):
            return
        staged = os.path.join(self._settings.work_dir, "restore")
        stager.place(checkpoint, staged, is_copied=False)
        put_back(staged, self._folders.log, [file.path for file in checkpoint.files])
        shutil.rmtree(staged, ignore_errors=True)


def _place_code(stager: Stager, code: Bundle, folder: str) -> States:
    paths: List[str] = []

    def is_wanted(file: RemoteFile) -> bool:
        paths.append(file.path)
        return True

    stager.place(code, folder, is_copied=True, wanted=is_wanted)
    return states_of(folder, paths)


def _failed(error: OSError) -> CannotRun:
    reason = "DiskFull" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "StageInFailed"
    return CannotRun(STAGE_IN_FAILED, reason, "staging failed: %s" % error)
