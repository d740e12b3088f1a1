"""What administrators may say of a Spark cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from yardmaster.errors import Problem
from yardmaster.job.spec_limits import is_text, shorten
from yardmaster.job.spec_spark import CLUSTER_NAME, LONGEST_NAME, MOST, MOST_MEMORY
from yardmaster_runner.spark.probe import PREFIX

LONGEST_SECRET = 1_000
MOST_MASTERS = 10
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9a-fA-F:]{2,39}\])"
_MASTER = re.compile(rf"{re.escape(PREFIX)}{_HOST}:[0-9]{{1,5}}(?:,{_HOST}:[0-9]{{1,5}})*", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}", re.ASCII)
_PYTHON = re.compile(r"[A-Za-z0-9_./+-]{1,300}", re.ASCII)
_EXAMPLE = "Enter an address such as spark://10.0.0.5:7077, or several: spark://one:7077,two:7077."
_OTHERS = {
    "yarn": "YARN",
    "k8s": "Spark on Kubernetes",
    "mesos": "Mesos",
    "local": "Spark in one process",
}
LIMITS = ("most_executors", "most_cores", "most_cores_at_once", "most_memory")


def problems_of(facts: Mapping[str, Any], name: str | None = None) -> Iterator[Problem]:
    """What is wrong with these facts, each by the name of its field. `name` where it is a new one's."""
    if name is not None and not CLUSTER_NAME.fullmatch(name):
        message = f"A name must have 1 to {LONGEST_NAME} lowercase letters, digits, dots, dashes and underscores."
        yield Problem("name", "bad_value", message, "Enter a name such as analytics.", shorten(name))
    if "master" in facts or name is not None:
        yield from _master(str(facts.get("master", "")))
    address = facts.get("driver_address", "")
    if ("driver_address" in facts or name is not None) and not _ADDRESS.fullmatch(address):
        message = "The address must be an IPv4 address or a host name at which executors reach the portal's machine."
        yield Problem("driver_address", "bad_value", message, "Enter an address such as 10.0.0.10.", shorten(address))
    if "python" in facts and not _PYTHON.fullmatch(facts["python"]):
        message = "The Python of executors must be the name or path of an interpreter on their machines."
        yield Problem("python", "bad_value", message, "Enter a name such as python3.", shorten(facts["python"]))
    secret = facts.get("secret") or ""
    if len(secret) > LONGEST_SECRET or not is_text(secret) or any(sign in secret for sign in "\r\n"):
        message = f"The secret must be one line of at most {LONGEST_SECRET} characters."
        yield Problem("secret", "bad_value", message, "Enter the value of spark.authenticate.secret.")
    for field in LIMITS:
        value, most = facts.get(field), MOST_MEMORY if field == "most_memory" else MOST * MOST
        if value is not None and not 1 <= value <= most:
            message = "A limit must be at least 1." if value < 1 else f"A limit can be at most {most}."
            yield Problem(field, "out_of_range", message, "Leave it empty for no limit.", str(value))


def _master(master: str) -> Iterator[Problem]:
    kind = _OTHERS.get(re.split(r"[:\[]", master)[0].strip().lower())
    if kind is not None:
        message = f"{kind} cannot be registered: only the masters of Spark standalone clusters can."
        remedy = f"{_EXAMPLE} docs/spark.md describes what to do with YARN and other clusters."
        yield Problem("master", "not_standalone", message, remedy, shorten(master))
    elif not _MASTER.fullmatch(master):
        message = "This is not the address of a Spark standalone master."
        yield Problem("master", "bad_value", message, _EXAMPLE, shorten(master))
    elif master.count(",") >= MOST_MASTERS or any(
        not 1 <= int(one.rpartition(":")[2]) <= 65_535 for one in master[len(PREFIX) :].split(",")
    ):
        message = f"A cluster can have at most {MOST_MASTERS} masters, each with a port from 1 to 65535."
        yield Problem("master", "bad_value", message, _EXAMPLE, shorten(master))
