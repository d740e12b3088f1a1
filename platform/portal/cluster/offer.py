"""The offer of `make up`: the shell around `choice`. Speaks to the cluster through `trying`, a process of its own, and
remembers what was chosen or declined in the portal's home.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
from django.core.exceptions import ImproperlyConfigured

from portal import env
from portal.cluster import choice
from portal.cluster.choice import Chosen, Course, Situation
from portal.cluster.found import Target, kubeconfig_of, target_of

MEMORY = "cluster.json"
PATIENCE = 60.0
"""Seconds that a pod may take to try this machine's addresses."""
_INSPECTION = 15.0
_ANSWER_WITHIN = 60.0
HOW_TO_TURN_ON = "`make up ENGINE=kubernetes` lets jobs run there."


class OfferFailed(Exception):
    """The engine was asked for and cannot be had. The message says why, and what helps."""


@dataclass(frozen=True)
class Settled:
    """Where the portal listens, and what its processes are told besides."""

    host: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Offer:
    """One start of a portal. `host` is empty where it was not said where it is to listen."""

    root: Path
    home: Path
    environment: Mapping[str, str]
    host: str
    port: int
    is_wanted: bool
    say: Callable[[str], None]
    stop: threading.Event

    def settle(self) -> Settled:
        """Decide, ask where a person is there to be asked, find an address that pods reach, and say what was chosen.

        Raises:
            OfferFailed: the engine was asked for by the command, and cannot be had.
        """
        plain = Settled(self.host or "127.0.0.1", {})
        try:
            now = self._situation()
            match choice.course_of(now):
                case Course.NOTHING:
                    return plain
                case Course.MENTION:
                    self.say(f"There is a kubeconfig ({_words(now.target)}): {HOW_TO_TURN_ON}")
                    return plain
                case Course.AS_BEFORE if now.remembered is not None:
                    self.say(f"Jobs run on Kubernetes ({_words(now.target)}), as was chosen before.")
                    return self._settled(self._with_notebooks(now.remembered))
                case course:
                    return self._find(now, is_asked=course is Course.ASK) or plain
        except OfferFailed as error:
            if self.is_wanted and not self.stop.is_set():
                raise
            self.say(f"The portal starts without Kubernetes. {error}")
            return plain

    # --- facts -------------------------------------------------------------------------------------------------------

    def _situation(self) -> Situation:
        variables = self.environment
        if self.is_wanted and variables.get("YARDMASTER_KUBERNETES") and not env.flag("YARDMASTER_KUBERNETES"):
            raise OfferFailed("YARDMASTER_KUBERNETES says no and ENGINE=kubernetes says yes: leave one of them out.")
        chosen, declined = self._recall()
        is_set = bool(variables.get("YARDMASTER_KUBERNETES") or variables.get("YARDMASTER_KUBECONFIG"))
        if chosen is not None and not self.is_wanted:  # whatever kubectl is set to by now
            target = target_of(chosen.target.kubeconfig, chosen.target.context)
        else:
            target = target_of(
                kubeconfig_of(variables, Path.home()), variables.get("YARDMASTER_KUBERNETES_CONTEXT", "")
            )
        return Situation(
            target, self.is_wanted, is_set, sys.stdin.isatty() and sys.stdout.isatty(), chosen, declined,
            tuple(own_addresses()), self._tasks().get("image", ""), self.host,
        )  # fmt: skip

    def _tasks(self) -> dict[str, Any]:
        """The operator's options for tasks, as the settings read them."""
        try:
            secret = env.secret("YARDMASTER_SECRET_KEY", self.home / "secret.key")
            table = env.table("YARDMASTER_KUBERNETES_TASKS")
        except ImproperlyConfigured as error:
            raise OfferFailed(str(error)) from error
        named = env.text("YARDMASTER_KUBERNETES_IMAGE")
        return {"installation": env.fingerprint(secret, "installation"), **({"image": named} if named else {}), **table}

    # --- finding -----------------------------------------------------------------------------------------------------

    def _find(self, now: Situation, *, is_asked: bool) -> Settled | None:
        """None: the person at the terminal does not want it."""
        target = now.target
        if target is None:
            raise OfferFailed(
                "There is no kubeconfig that leads to a cluster: set KUBECONFIG, or YARDMASTER_KUBERNETES=1 where the "
                "portal itself runs on the cluster."
            )
        seen = self._ask_cluster("inspect", asdict(target), _INSPECTION)
        self.say(f"There is a Kubernetes cluster: {_words(target)}, {seen['version']}.")
        if is_asked and not self._is_agreed(target):
            return None
        image = choice.image_of(now.image, seen["images"])
        if not image:
            raise OfferFailed(f"{choice.NAME_THE_IMAGE} make up ENGINE=kubernetes")
        host = self._host(now, target, image, seen["towards"])
        chosen = Chosen(target, image, host, choice.image_of("", seen["images"], choice.DEVELOPMENT_WORKBENCH))
        self._remember({"chosen": asdict(chosen)})
        if not chosen.workbench_image and not self.environment.get("YARDMASTER_KUBERNETES_WORKBENCH_IMAGE"):
            self.say(choice.NAME_THE_NOTEBOOKS)
        return self._settled(chosen)

    def _with_notebooks(self, chosen: Chosen) -> Chosen:
        """What was chosen, with the project's own image of notebooks where a node has it by now; without one it is said
        what to do."""
        if chosen.workbench_image or self.environment.get("YARDMASTER_KUBERNETES_WORKBENCH_IMAGE"):
            return chosen
        try:
            images = self._ask_cluster("inspect", asdict(chosen.target), _INSPECTION)["images"]
        except OfferFailed:  # it is not needed to start
            return chosen
        found = replace(chosen, workbench_image=choice.image_of("", images, choice.DEVELOPMENT_WORKBENCH))
        if found.workbench_image:
            self._remember({"chosen": asdict(found)})
        else:
            self.say(choice.NAME_THE_NOTEBOOKS)
        return found

    def _host(self, now: Situation, target: Target, image: str, towards: str) -> str:
        if self.environment.get("YARDMASTER_TASK_URL"):
            return self.host or "127.0.0.1"  # where pods find it was said; the portal tries it when it is up
        hosts = choice.candidates(towards, now.addresses, self.host)
        if not hosts:
            raise OfferFailed(choice.why_none((), {}))
        self.say(f"A pod tries where it reaches this machine: {', '.join(hosts)} ...")
        question = {
            **asdict(target), "hosts": hosts, "port": self.port, "patience": PATIENCE,
            "tasks": {**self._tasks(), "image": image},
        }  # fmt: skip
        outcomes = self._ask_cluster("reach", question, PATIENCE + 30)["outcomes"]
        host = choice.chosen_host(hosts, outcomes)
        if not host:
            raise OfferFailed(choice.why_none(hosts, outcomes))
        self.say(f"Pods reach this machine at {host}: the portal listens there. Tasks run {image}.")
        return host

    def _ask_cluster(self, what: str, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        child = subprocess.Popen(
            [sys.executable, "-m", "portal.cluster.trying", what], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.root, start_new_session=True,
            env={**os.environ, "PYTHONPATH": f"{self.root / 'platform'}:{self.root}"},
        )  # fmt: skip
        deadline = time.monotonic() + seconds
        given: str | None = json.dumps(question)
        while True:
            try:
                output, errors = child.communicate(given, timeout=0.3)
                break
            except subprocess.TimeoutExpired:
                given = None
                if self.stop.is_set() or time.monotonic() > deadline:
                    child.kill()
                    child.communicate()
                    raise OfferFailed(f"The cluster did not answer within {seconds:g} s.") from None
        if child.returncode:
            why = errors.strip().rpartition("\n")[2] or f"the process that tried it ended with {child.returncode}."
            raise OfferFailed(f"The cluster could not be tried: {why}")
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
        if "problem" in answer:
            raise OfferFailed(answer["problem"])
        return answer

    # --- a person ----------------------------------------------------------------------------------------------------

    def _is_agreed(self, target: Target) -> bool:
        """A refusal is remembered, no answer is not."""
        sys.stdout.write(
            "  Let jobs run there? The portal makes namespaces of its own on it, and listens at an address of this\n"
            "  machine that pods reach, in place of 127.0.0.1. [y/N] "
        )
        sys.stdout.flush()
        answer = self._line()
        if answer.strip().lower() in ("y", "yes"):
            return True
        if answer:
            self._remember({"declined": asdict(target)})
            self.say(f"It is left alone. {HOW_TO_TURN_ON}")
        return False

    def _line(self) -> str:
        deadline = time.monotonic() + _ANSWER_WITHIN
        while not self.stop.is_set() and time.monotonic() < deadline:
            if select.select([sys.stdin], [], [], 0.2)[0]:
                return sys.stdin.readline()
        sys.stdout.write("\n")
        return ""

    # --- memory ------------------------------------------------------------------------------------------------------

    def _settled(self, chosen: Chosen) -> Settled:
        host = self.host if choice.is_everywhere(self.host) else chosen.host
        return Settled(host, choice.settings_of(chosen, self.environment, self.port))

    def _recall(self) -> tuple[Chosen | None, Target | None]:
        """What was chosen, what was declined. A file that says neither is none."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            table = json.loads((self.home / MEMORY).read_text())
            if "declined" in table:
                return None, Target(**table["declined"])
            known = table["chosen"]
            notebooks = str(known.get("workbench_image", ""))
            return Chosen(Target(**known["target"]), str(known["image"]), str(known["host"]), notebooks), None
        return None, None

    def _remember(self, table: Mapping[str, Any]) -> None:
        draft = self.home / f"{MEMORY}.{os.getpid()}"
        draft.write_text(json.dumps(table))
        draft.replace(self.home / MEMORY)


def own_addresses() -> list[str]:
    """The addresses of this machine's interfaces that are up."""
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    return [
        one.address.partition("%")[0]
        for name, found in psutil.net_if_addrs().items()
        for one in found
        if name in up and one.family in (socket.AF_INET, socket.AF_INET6)
    ]


def _words(target: Target | None) -> str:
    return f"context {target.context}, {target.server}" if target else "none"
