"""A Spark cluster that was there before the job: what of it a driver is told, and the settings that follow. Pure.

Its executors are processes of other machines, which have nothing of the task: neither its files nor its environment.
What they need comes with the application: the code as an archive, and two variables by which they ask the portal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

MIB = 1 << 20
URL, TOKEN = "YARDMASTER_TASK_URL", "YARDMASTER_TASK_TOKEN"
"""The variables of executors by which they ask the portal, as `data.portal_files` has them, which goes there alone."""
PYTHON = "PYSPARK_PYTHON"
ENDED = re.compile(rb"Application has been killed\. Reason: (?P<why>[^\r\n]{1,300})")
"""Spark's words in a driver that no longer has the cluster."""
_SECRET = re.compile(rb"SaslException|SASL|AuthEngine|challenge", re.IGNORECASE)


@dataclass(frozen=True)
class Registered:
    """The cluster `name`. `master` is `spark://HOST:PORT[,HOST:PORT]`, `driver_address` the host by which its executors
    reach the driver, `python` the interpreter on them; `secret` may be empty. The rest is what the application takes:
    each of the `executors` has so many cores, and so many bytes of memory."""

    name: str
    master: str
    driver_address: str
    python: str
    executors: int
    cores: int
    memory: int
    secret: str = field(default="", repr=False)
    url: str = ""
    """The portal's, for executors, and the token of the job's tasks there."""
    token: str = field(default="", repr=False)
    offered: str = ""
    """The folder on this machine with what scripts may import of the runner."""
    has_code: bool = True
    """Executors get the code of the application; else only what they import of the runner."""

    @property
    def shown(self) -> str:
        return "the Spark cluster %s (%s)" % (self.name, self.master)


def of_order(answer: Mapping[str, Any]) -> Optional[Registered]:
    """The cluster in the portal's order; None: the job brings its own."""
    facts, asked = answer.get("spark"), answer["spec"].get("spark")
    if not facts or not asked:
        return None
    return Registered(
        name=str(asked["cluster"]),
        master=str(facts["master"]),
        driver_address=str(facts["driver_address"]),
        python=str(facts["python"]),
        executors=int(asked["executors"]),
        cores=int(asked["cores"]),
        memory=int(asked["memory"]),
        secret=str(facts.get("secret") or ""),
        url=str(facts.get("url") or ""),
    )


def announced(registered: str, own: str) -> str:
    """The host at which executors look for a driver: the one that is registered, which the portal names for drivers on
    its own machine alone. Elsewhere each task has an address of its own by which others reach it."""
    return registered or own


def settings(one: Registered, own: Mapping[str, str], archive: str) -> Dict[str, str]:
    """Spark's settings for this cluster in the place of those for the job's own. They win over `own`, which are those
    of the code: an administrator has limited what a job takes. `archive` has the code for the executors.

    The names of the secret and of the token are such that Spark shows their values neither on its pages nor in event
    logs (`spark.redaction.regex`)."""
    archives = [found for found in (archive, own.get("spark.submit.pyFiles", "")) if found]
    found = {
        "spark.master": one.master,
        "spark.executor.instances": str(one.executors),
        "spark.executor.cores": str(one.cores),
        "spark.cores.max": str(one.executors * one.cores),
        "spark.executor.memory": "%dm" % (one.memory // MIB),
        "spark.driver.host": one.driver_address,
        "spark.authenticate": "true" if one.secret else "false",
        "spark.pyspark.python": one.python,
        "spark.submit.pyFiles": ",".join(archives),
        **({"spark.executorEnv.%s" % URL: one.url, "spark.executorEnv.%s" % TOKEN: one.token} if one.token else {}),
    }
    if one.secret:
        found["spark.authenticate.secret"] = one.secret
    return found


def why_ended(one: Registered, tail: bytes) -> str:
    """Why a driver with this at the end of its output lost the cluster, or never had it; empty where it did not."""
    found = list(ENDED.finditer(tail))
    if not found:
        return ""
    why = found[-1]["why"].decode("utf-8", "replace").strip()
    if "unresponsive" in why and _SECRET.search(tail):
        words = "%s refused the driver: the secret that is registered for it is wrong." % one.shown
    elif "removed our application" in why:
        words = "%s has given the application up (%s). Most often its executors do not reach the driver at %s, or do "
        words = (words + "not start: see their logs there.") % (one.shown, why, one.driver_address)
    else:
        words = "%s did not accept the application: %s" % (one.shown, why)
    return words[:1].upper() + words[1:]


LOGGING = """appender.brief.type = Console
appender.brief.name = brief
appender.brief.target = SYSTEM_ERR
appender.brief.layout.type = PatternLayout
appender.brief.layout.pattern = spark: %p %c{1}: %maxLen{%m %ex{1}}{400}%n
logger.client.name = org.apache.spark.deploy.client
logger.client.additivity = false
logger.client.appenderRef.brief.ref = brief
logger.transport.name = org.apache.spark.network.client
logger.transport.additivity = false
logger.transport.appenderRef.brief.ref = brief
"""
"""More of log4j's settings: what Spark says of a master that does not answer, without its stacks of 80 lines."""
