"""Brings what a job asks for (`requirement_files`) into the Python environment of its script.

The first task that needs a set of packages on an image installs it with pip, through the portal's package index, and
sends it to the portal; the others, of this job and of later ones in its namespace, unpack what was sent. TensorFlow and
what it depends on stay as the image has them unless the job itself names them.
Not here: pip's command and what its failures mean (`pip_run`), the archive (`package_archive`).
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import sysconfig
import threading
import time
import uuid
from dataclasses import replace
from importlib import metadata
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set

from yardmaster_runner import own_python, package_archive, pip_run
from yardmaster_runner.exits import PACKAGES_FAILED, CannotRun
from yardmaster_runner.order import Bundle, Limits, Order, read_files
from yardmaster_runner.requirement_files import BadRequirements, Wanted, name_of, normal, wanted
from yardmaster_runner.settings import Settings
from yardmaster_runner.stage import Stager
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader, UploadFailed, describe

FRAMEWORK = ("tensorflow", "tf-keras", "keras", "tensorboard")
"""What a job's packages never replace unless it names them, with all that these depend on."""
JUPYTER = "jupyter"
"""The one program of the portal that has packages of its own."""
ASK_EVERY = 2.0
RENEW_EVERY = 15.0
Insist = Callable[[Callable[[], Dict[str, Any]]], Dict[str, Any]]


class Packages:
    """`install` is called once, in the main thread, when the code is in place. `ask` calls the portal until it answers;
    `say` writes a line into the task's log."""

    def __init__(
        self, settings: Settings, api: TaskApi, code: str, ask: Insist, say: Callable[[str], None], uploader: Uploader
    ) -> None:
        self._settings = settings
        self._api = api
        self._code = code
        self._ask = ask
        self._say = say
        self._uploader = uploader
        self._holder = str(uuid.uuid4())

    def install(self, order: Order) -> Settings:
        """The settings with which the script is to be started. Raises `CannotRun` with `PackagesFailed`."""
        if order.runs_server or (order.program and order.program != JUPYTER):
            return self._settings
        try:
            asked = wanted(self._code, order.requirements)
        except (BadRequirements, OSError) as error:
            raise failed(str(error)) from error
        for one in asked.left_out:
            self._say(one)
        if not asked.lines:
            return self._settings
        self._say("this job needs %s" % _in_words(asked))
        work_dir = self._settings.work_dir
        own_python.make(work_dir)
        self._bring(asked, order)
        return replace(self._settings, has_own_python=True, python=own_python.python_in(work_dir))

    def _bring(self, asked: Wanted, order: Order) -> None:
        said_waiting = False
        while True:
            answer = self._claim(asked)
            if answer["state"] == "ready":
                return self._unpack(answer, asked)
            if answer["state"] != "wait":
                return self._build(asked, answer, order)
            if not said_waiting:
                self._say("another task is installing these packages; waiting for it")
            said_waiting = True
            time.sleep(ASK_EVERY)

    def _claim(self, asked: Wanted) -> Dict[str, Any]:
        facts = {"requirements": list(asked.lines), "constraints": list(asked.constraints), "holder": self._holder}
        return self._ask(lambda: self._api.environment({**facts, **image_facts()}))

    def _unpack(self, answer: Mapping[str, Any], asked: Wanted) -> None:
        work_dir, bundle = self._settings.work_dir, _bundle(answer)

        def renewed() -> Order:
            return _only(_bundle(self._claim(asked)))

        began, place = time.monotonic(), os.path.join(work_dir, "packages-in")
        stager = Stager(self._api.portal.hosts, self._settings.cache_dir, renewed, _no_more)
        stager.place(bundle, place, is_copied=False)
        archive = os.path.join(place, package_archive.NAME)
        try:
            package_archive.unpack(archive, own_python.folder_in(work_dir), int(answer["limit"]))
        except package_archive.BadArchive as error:
            raise failed("the stored packages cannot be used: %s" % error) from error
        shutil.rmtree(place, ignore_errors=True)
        lock = answer["lock"]
        self._say("%s from an earlier job (%.1f s): %s" % (_count(lock), time.monotonic() - began, _names(lock)))
        self._record(lock)

    def _build(self, asked: Wanted, answer: Mapping[str, Any], order: Order) -> None:
        began = time.monotonic()
        with _Renewing(lambda: self._claim(asked)):
            lock = self._run_pip(asked, answer)
            self._say("%s installed (%.1f s): %s" % (_count(lock), time.monotonic() - began, _names(lock)))
            self._record(lock)
            if answer["state"] == "build" and lock:
                self._keep(lock, answer)

    def _run_pip(self, asked: Wanted, answer: Mapping[str, Any]) -> List[Dict[str, str]]:
        folder = os.path.join(self._settings.work_dir, "packages-out")
        os.makedirs(folder, exist_ok=True)
        named = {name_of(line) for line in asked.lines}
        here = installed()
        run = pip_run.PipRun(
            python=own_python.python_in(self._settings.work_dir),
            folder=folder,
            index=self._settings.url + str(answer["index"]),
            token=self._api.portal.token(),
            say=self._say,
            online=bool(answer["online"]),
        )
        held = sorted("%s==%s" % (name, here[name]) for name in _closure(FRAMEWORK, here) - named)
        roots = [line for line in held if line.startswith("tensorflow==")]
        try:
            lock = run.install([*asked.lines, *([] if _has_hashes(asked) else roots)], [*held, *asked.constraints])
        except pip_run.PipFailed as error:
            raise failed("%s: %s" % (asked.source or "the requirements", error)) from error
        size = package_archive.size_of(own_python.folder_in(self._settings.work_dir))
        if size > int(answer["limit"]):
            message = "they take %d bytes, more than the %d that are allowed (YARDMASTER_PACKAGES_LIMIT)"
            raise failed(message % (size, int(answer["limit"])))
        return lock

    def _keep(self, lock: Sequence[Mapping[str, str]], answer: Mapping[str, Any]) -> None:
        """For other tasks. What cannot be kept is installed here all the same."""
        archive = os.path.join(self._settings.work_dir, "packages-out", package_archive.NAME)
        try:
            package_archive.pack(own_python.folder_in(self._settings.work_dir), archive)
            facts = {"environment": answer["environment"], "holder": self._holder, "lock": list(lock)}
            self._uploader.send("environment/archive", [describe(package_archive.NAME, archive)], facts)
        except (UploadFailed, OSError) as error:
            self._say("the packages are not kept for other tasks: %s" % error)
        shutil.rmtree(os.path.dirname(archive), ignore_errors=True)

    def _record(self, lock: Sequence[Mapping[str, str]]) -> None:
        """What was installed stands with the job. Where it cannot, the job runs all the same."""
        try:
            self._ask(lambda: self._api.packages(list(lock)))
        except CannotRun as error:
            self._say("the list of packages is not kept: %s" % error)


class _Renewing:
    """Asks the portal again while pip works, so that no other task begins the same."""

    def __init__(self, claim: Callable[[], object]) -> None:
        self._claim = claim
        self._over = threading.Event()

    def __enter__(self) -> None:
        threading.Thread(target=self._renew, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _renew(self) -> None:
        while not self._over.wait(RENEW_EVERY):
            try:
                self._claim()
            except CannotRun:
                return


def failed(message: str) -> CannotRun:
    return CannotRun(PACKAGES_FAILED, "PackagesFailed", message)


def image_facts() -> Dict[str, str]:
    """What a set of packages fits: this Python on this platform with these distributions."""
    python = "%d.%d" % sys.version_info[:2]
    listed = sorted("%s==%s" % item for item in installed().items())
    libc = "-".join(platform.libc_ver())
    words = "\n".join([platform.python_implementation(), python, sysconfig.get_platform(), libc, *listed])
    return {"python": python, "image": hashlib.sha256(words.encode()).hexdigest()}


def installed() -> Dict[str, str]:
    """The versions of the image's distributions, by normalised name."""
    found: Dict[str, str] = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name:
            found.setdefault(normal(name), one.version)
    return found


def _closure(roots: Sequence[str], here: Mapping[str, str]) -> Set[str]:
    """The roots that are installed, and all that they depend on."""
    found: Set[str] = set()
    waiting = [one for one in roots if one in here]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        needs = metadata.requires(name) or ()
        waiting += [one for one in map(name_of, (line for line in needs if "extra ==" not in line)) if one in here]
    return found


def _has_hashes(asked: Wanted) -> bool:
    return any("--hash" in line for line in asked.lines)


def _bundle(answer: Mapping[str, Any]) -> Bundle:
    return Bundle(version=str(answer["environment"]), name="the packages", files=read_files(answer))


def _only(bundle: Bundle) -> Order:
    """An order of which the stager looks at one bundle alone."""
    return Order(
        job="", attempt=0, strategy="", entry_point="", arguments=(), environment={}, paths={}, replicas={},
        grace_period=0, code=None, inputs=(bundle,), checkpoint=None, limits=Limits(),
    )  # fmt: skip


def _no_more(version: str, after: str) -> Any:
    raise AssertionError("an archive is one file")


def _in_words(asked: Wanted) -> str:
    shown = ", ".join(line for line in asked.lines[:8] if not line.startswith("-"))
    more = len(asked.lines) - 8
    return "%s%s%s" % (
        "the packages of %s: " % asked.source if asked.source else "",
        shown,
        " and %d more" % more if more > 0 else "",
    )


def _count(lock: Sequence[object]) -> str:
    return "1 package" if len(lock) == 1 else "%d packages" % len(lock) if lock else "no package"


def _names(lock: Sequence[Mapping[str, str]]) -> str:
    if not lock:
        return "the image has all of them"
    names = ["%s %s" % (one["name"], one["version"]) for one in lock]
    return ", ".join(names[:12]) + (" and %d more" % (len(names) - 12) if len(names) > 12 else "")
