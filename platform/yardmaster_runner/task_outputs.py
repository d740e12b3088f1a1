"""Which folders' files a task keeps as outputs, and whose event files it reads."""

from __future__ import annotations

import os
from typing import Callable, List, Optional

from yardmaster_runner.launch import Folders
from yardmaster_runner.order import Order
from yardmaster_runner.output_keeper import OutputKeeper
from yardmaster_runner.output_sender import OutputSender
from yardmaster_runner.patience import AWAY_AFTER, PORTAL_MAY_BE_AWAY
from yardmaster_runner.reporter import Facts
from yardmaster_runner.settings import Settings
from yardmaster_runner.summaries import Summaries
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader
from yardmaster_runner.working_folder import States, WorkingFolder


def decides(settings: Settings, order: Order) -> bool:
    return order.is_decided_by(settings.role, settings.index)


def reads_events(settings: Settings, order: Order) -> bool:
    """In a shared log directory one task, and the evaluator, read the event files for all."""
    return decides(settings, order) or not settings.log_dir_is_shared or settings.role == "evaluator"


def has_outputs(settings: Settings, order: Order) -> bool:
    """A parameter server has none, and neither has a server program of ours."""
    return not (order.runs_server or order.is_service or settings.role == "ps")


def working_folder(settings: Settings, order: Order, folders: Folders, staged: States) -> Optional[WorkingFolder]:
    """None where no script of the user runs in it, or nothing of the task is kept."""
    if order.program or order.code is None or not has_outputs(settings, order):
        return None
    return WorkingFolder(folders.code, folders.log, staged, order.limits)


def summaries(settings: Settings, order: Order) -> Optional[Summaries]:
    """None where another task reads the event files, or nothing of the task is kept."""
    if not (has_outputs(settings, order) and reads_events(settings, order)):
        return None
    return Summaries(os.path.join(settings.work_dir, "summaries"))


def output_keeper(
    settings: Settings,
    order: Order,
    folders: Folders,
    api: TaskApi,
    facts: Facts,
    uploader: Callable[[float], Uploader],
    working: Optional[WorkingFolder],
    found: Optional[Summaries],
) -> Optional[OutputKeeper]:
    """None where the task has no outputs to send."""
    senders: List[OutputSender] = []
    if has_outputs(settings, order) and reads_events(settings, order):
        senders.append(_of_log_dir(settings, order, folders, api))
    if working is not None:
        senders.append(_of_working_folder(settings, order, folders, api, working))
    if found is not None:
        senders.append(_of_summaries(settings, order, api, found))
    if not senders:
        return None
    return OutputKeeper(
        uploader(AWAY_AFTER),
        uploader(PORTAL_MAY_BE_AWAY),
        senders,
        lambda problem: facts.unsaved("outputs", problem),
        is_watched=lambda: facts.is_watched,
    )


def _of_log_dir(settings: Settings, order: Order, folders: Folders, api: TaskApi) -> OutputSender:
    """In a shared log directory one task sends the files of all; the evaluator may outlive it, and sends at its end
    what it has written since."""
    return OutputSender(
        api,
        folders.log,
        os.path.join(settings.work_dir, "outputs-out"),
        is_shared=settings.log_dir_is_shared,
        at_end_only=settings.log_dir_is_shared and not decides(settings, order),
        asks_first=settings.restart > 0,
    )


def _of_working_folder(
    settings: Settings, order: Order, folders: Folders, api: TaskApi, working: WorkingFolder
) -> OutputSender:
    """The deciding task's files keep their plain names; those of another task get its name in front."""
    return OutputSender(
        api,
        folders.code,
        os.path.join(settings.work_dir, "working-out"),
        working.listing,
        is_shared=decides(settings, order),
        asks_first=settings.restart > 0,
    )


def _of_summaries(settings: Settings, order: Order, api: TaskApi, found: Summaries) -> OutputSender:
    """Of the task that reads event files for all, under their plain names."""
    scratch = os.path.join(settings.work_dir, "summaries-out")
    return OutputSender(api, found.folder, scratch, found.listing, is_shared=decides(settings, order))
