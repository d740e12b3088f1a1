"""The data connection of a job: what its specification may say, and what tasks are told. Pure.

Not here: whether there is such a connection (`apps.jobs.checking`), and reading its cluster
(`yardmaster_runner.data.ignite_reader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from yardmaster.errors import Problem
from yardmaster.job.spec import SecretInput, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, is_text, shorten
from yardmaster.job.strategy import only_serves

CONNECTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
LONGEST_CACHE = 200
PREFIX = "IGNITE_DATASET_"
FOLDER = "data-connection"
"""Of the folder of secrets, where its certificates lie."""
SECRETS = {
    "certificate": ("CERTFILE", "client.pem"),
    "certificate_password": ("CERT_PASSWORD", ""),
    "ca": ("CAFILE", "ca.pem"),
    "username": ("USERNAME", ""),
    "password": ("PASSWORD", ""),
}
"""The end of the variable, and the file, of each secret that a connection names."""
DECIDED = frozenset(
    f"{PREFIX}{one}" for one in ("HOST", "PORT", "CACHE_NAME", "KEYFILE", *(end for end, _ in SECRETS.values()))
)
"""Variables that a connection decides."""
PORT = 10800


def connection_problems(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    """Every problem of the spec's `connection`."""
    found = spec.connection
    if found is None:
        return
    if only_serves(spec.strategy) or spec.program:
        what = f"The program {spec.program}" if spec.program else spec.strategy.value
        message = f"{what} runs no script that could read a data connection."
        yield Problem("connection", "conflict", message, "Remove connection.", shorten(found.name))
        return
    if not CONNECTION_NAME.fullmatch(found.name):
        message = "This is no name of a data connection."
        remedy = "Write its name as the page of the namespace's data connections shows it."
        yield Problem("connection.name", "bad_value", message, remedy, shorten(found.name))
    if len(found.cache) > LONGEST_CACHE or not is_text(found.cache) or not found.cache.isprintable():
        message = f"The name of a cache has at most {LONGEST_CACHE} printable characters."
        yield Problem(
            "connection.cache", "bad_value", message, "Copy it from the connection's page.", shorten(found.cache)
        )
    message = "The data connection sets this variable."
    for name in spec.environment:
        if name in DECIDED:
            yield Problem(
                f"environment.{shorten(name)}", "duplicate", message, "Remove it, or remove connection.", name
            )
    for index, one in enumerate(spec.secrets):
        if one.env in DECIDED:
            remedy = "Remove this secret, or remove connection."
            yield Problem(f"secrets.{index}.env", "duplicate", message, remedy, one.env)
        if one.file.casefold().partition("/")[0] == FOLDER:
            words = "The files of the data connection lie in this folder."
            yield Problem(f"secrets.{index}.file", "duplicate", words, "Use another path.", shorten(one.file))


def connection_variables(hosts: str, cache: str) -> dict[str, str]:
    """What tasks are told in plain variables."""
    found = {f"{PREFIX}HOST": hosts, f"{PREFIX}PORT": str(PORT)}
    return found | ({f"{PREFIX}CACHE_NAME": cache} if cache else {})


def connection_secrets(names: Mapping[str, str]) -> list[SecretInput]:
    """The secrets that tasks get for the connection; `names` are those of the secrets by what they are for."""
    return [
        SecretInput(name, f"{PREFIX}{SECRETS[what][0]}", f"{FOLDER}/{SECRETS[what][1]}" if SECRETS[what][1] else "")
        for what, name in names.items()
    ]
