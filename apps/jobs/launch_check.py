"""The launch form's answer to "would it run?", in words and with what to do. What it knows it asks `checking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.accounts.models import User
from apps.api.problems import ApiProblem
from apps.jobs.checking import JobCheck, job_check
from apps.jobs.launch_form import Reading
from apps.jobs.never import Hopeless
from apps.jobs.row_words import count_words
from apps.namespaces.models import Namespace
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.fitting import Fit
from yardmaster.preflight import Finding
from yardmaster.quantity import format_amount

_POOLS = {
    "quota": "the namespace's quota",
    "capacity": "the engine",
    "machine": "the largest machine",
    "nodes": "places on single machines",
}


@dataclass(frozen=True)
class Lack:
    """One resource that lacks: what is asked, what is free, of how much, where."""

    resource: str
    needs: str
    unused: str
    limit: str
    where: str


@dataclass(frozen=True)
class Verdict:
    """`kind`: `fits`, `waits`, `never`, `incomplete` (the job is not valid yet) or `refused` (not by you, not here)."""

    kind: str
    word: str
    message: str
    remedy: str = ""
    icon: str = field(default="", kw_only=True)
    lacks: Sequence[Lack] = ()
    shape: str = ""
    """The largest shape that would start now, as the form takes it; empty where there is none."""
    shape_words: str = ""
    problems: Sequence[Problem] = ()
    warnings: Sequence[Finding] = ()


def verdict_of(user: User, namespace: Namespace, reading: Reading, engine: str) -> Verdict:
    """What would become of the job. Never raises for what people can do."""
    try:
        found = job_check(user=user, namespace=namespace, data=reading.spec, engine=engine or None)
    except ApiProblem as problem:
        return Verdict("refused", "Not here", problem.detail, problem.remedy, icon="lock")
    except SpecRejected as error:
        return _incomplete([*reading.problems, *error.problems])
    except YardmasterError as error:
        return Verdict("refused", "Not known", error.message, error.remedy or "Try again soon.", icon="plug-off")
    if found.problems or reading.problems:
        return _incomplete([*reading.problems, *found.problems])
    return _shown(found)


def verdict_of_hopeless(found: Hopeless) -> Verdict:
    """What is asked before a job is queued that can never start: `shape` is the largest that could, if nothing ran."""
    never = Verdict("never", "Can never fit", found.never.message, found.never.remedy, icon="ban")
    return _with_numbers(never, found.numbers, found.largest_fit or {})


def _incomplete(problems: Sequence[Problem]) -> Verdict:
    count = "1 thing is" if len(problems) == 1 else f"{len(problems)} things are"
    return Verdict("incomplete", "Not complete", f"{count} missing or wrong.", icon="pencil", problems=problems)


def _shown(found: JobCheck) -> Verdict:
    if found.verdict == Fit.FITS_NOW.value:
        message = (
            "It would start at once." if not found.warnings else "It would start at once, but look at the notes below."
        )
        return Verdict("fits", "Fits now", message, icon="circle-check", warnings=found.warnings)
    ahead = found.position or 0
    verdict = (
        Verdict("waits", f"Waits behind {ahead}" if ahead else "Waits", found.message, found.remedy, icon="hourglass")
        if found.verdict == Fit.WAITS.value
        else Verdict("never", "Can never fit", found.message, found.remedy, icon="ban")
    )
    return replace(_with_numbers(verdict, found.numbers, found.largest_fit or {}), warnings=found.warnings)


def _with_numbers(verdict: Verdict, numbers: Sequence[Mapping[str, Any]], shape: Mapping[str, int]) -> Verdict:
    return replace(
        verdict,
        lacks=[_lack(one) for one in numbers],
        shape=",".join(f"{role}={count}" for role, count in shape.items()),
        shape_words=", ".join(count_words(role, count) for role, count in shape.items()),
    )


def _lack(numbers: Mapping[str, Any]) -> Lack:
    resource = str(numbers["resource"])
    needs, unused, limit = (format_amount(resource, float(numbers[one])) for one in ("needs", "unused", "limit"))
    return Lack(
        resource.replace("_", " "), needs, unused, limit, _POOLS.get(str(numbers["pool"]), str(numbers["pool"]))
    )
