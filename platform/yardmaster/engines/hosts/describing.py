"""What administrators are told of each machine beside what it has: how it is reached, and by which key it is known.

`Machine.details` has, as JSON: `place` (`[address]:port`), `away_since` (seconds since 1970; null: it is reached),
`clock` (seconds that its clock is ahead of the portal's; null: not known), `environment` (what tasks import, as a value
of `surveying.Installed`; null: not known), `workbench` (the same of JupyterLab), `spark` (whether Spark is installed),
`known` (fingerprints of the host keys by which it is known), and for a machine whose key no one has accepted, `shown`
(the fingerprint of the key that it shows now), `shown_key` (that key) and `unshown` (why it shows none).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from yardmaster.engines.base import Machine
from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.keys import (
    HOST_KEY_CHANGED,
    HOST_KEY_UNKNOWN,
    Keys,
    shown_keys,
)
from yardmaster.engines.hosts.surveying import Survey


def machines_described(surveys: Iterable[Survey], keys: Keys, links: Links) -> list[Machine]:
    """By name. Machines that are not known, or show another key, are asked for the key that they show now."""
    found = list(surveys)
    shown = shown_keys(one.host for one in found if _lacks_key(one))
    described = []
    for one in found:
        clock = None if one.away_since is not None else round(links.offset(one.host.name), 1)
        details = {
            "place": one.host.place,
            "away_since": one.away_since,
            "clock": clock,
            "environment": one.environment,
            "workbench": one.workbench,
            "spark": one.has_spark,
            "known": keys.known(one.host),
        }
        described.append(replace(one.machine, details={**details, **shown.get(one.host.name, {})}))
    return sorted(described, key=lambda one: one.name)


def _lacks_key(survey: Survey) -> bool:
    """Whether an administrator has a key to accept. One that stands in the list is changed there."""
    code = "" if survey.error is None else survey.error.code
    return code in (HOST_KEY_UNKNOWN, HOST_KEY_CHANGED) and not survey.host.host_key
