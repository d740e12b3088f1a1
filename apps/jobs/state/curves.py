"""The curves of a job: many points come in, a bounded number is kept, and no more are shown than a screen has room for.

Thinning keeps the first and the last point of a curve, and on reading the extremes of each stretch: a spike stays one,
and a value that is not finite stays seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, F, QuerySet

from apps.jobs.models import Job, ScalarPoint, TaskFact

KEPT_PER_CURVE = 4_000
CURVES_PER_ATTEMPT = 1_000
THIN_AFTER = 5_000
"""Points of one task after which its attempt's curves are thinned."""
_LONGEST_NAME = 200


class Point(NamedTuple):
    """One value. None: not a number, or infinite, as `not_finite` says where the task did."""

    step: int
    time: float
    value: float | None
    not_finite: str = ""


@dataclass(frozen=True)
class Curve:
    """What a script wrote under one tag in one run, by step."""

    run: str
    tag: str
    points: list[Point]

    @property
    def triples(self) -> list[tuple[int, float, float | None]]:
        return [(one.step, one.time, one.value) for one in self.points]

    @property
    def not_finite(self) -> dict[str, str]:
        """By step: what the points are that have no value."""
        return {str(one.step): one.not_finite or "unknown" for one in self.points if one.value is None}


def points_add(job: Job, fact: TaskFact, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keep these points of the current attempt; those that are there already stay as they are. Returns what of the
    task's fact has changed by it, to be written with the rest of its report."""
    if not points:
        return {}
    rows = [
        ScalarPoint(
            job=job, attempt=job.attempt, run=one["run"][:_LONGEST_NAME], tag=one["tag"][:_LONGEST_NAME],
            step=one["step"], time=one["time"], value=one["value"], not_finite=one.get("not_finite", ""),
        )
        for one in points
    ]  # fmt: skip
    ScalarPoint.objects.bulk_create(rows, ignore_conflicts=True)
    if fact.points_since_thinning + len(rows) < THIN_AFTER:
        return {"points_since_thinning": F("points_since_thinning") + len(rows)}
    curves_thin(job, job.attempt)
    return {"points_since_thinning": 0}


def curves_thin(job: Job, attempt: int) -> None:
    """Drop every other point of curves that have too many, and whole curves past the bound on their number."""
    mine = ScalarPoint.objects.filter(job=job, attempt=attempt)
    curves = mine.values("run", "tag").annotate(points=Count("pk")).order_by("run", "tag")
    for number, one in enumerate(list(curves.values_list("run", "tag", "points"))):
        run, tag, points = one
        curve = mine.filter(run=run, tag=tag)
        if number >= CURVES_PER_ATTEMPT:
            curve.delete()
        elif points > KEPT_PER_CURVE:
            steps = list(curve.order_by("step").values_list("step", flat=True))
            surplus = steps[1:-1:2]
            for chunk in _batched(surplus, 500):
                curve.filter(step__in=chunk).delete()


def _batched(values: Sequence[int], size: int) -> list[Sequence[int]]:
    return [values[at : at + size] for at in range(0, len(values), size)]


def curves_of(job: Job, attempt: int, *, run: str | None, tag: str | None, most: int) -> list[Curve]:
    """The attempt's curves (of one run, of one tag), each with at most `most` points."""
    points = ScalarPoint.objects.filter(job=job, attempt=attempt)
    points = points.filter(**{name: value for name, value in (("run", run), ("tag", tag)) if value is not None})
    names = points.values_list("run", "tag").distinct().order_by("run", "tag")[:CURVES_PER_ATTEMPT]
    return [Curve(one, name, _points(points.filter(run=one, tag=name), most)) for one, name in list(names)]


def _points(curve: QuerySet[ScalarPoint], most: int) -> list[Point]:
    rows = curve.order_by("step").values_list("step", "time", "value", "not_finite")
    return thin([Point(*row) for row in rows], most)


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """At most `most` (4 or more) points: the first, the last, and the lowest and highest of each stretch between; of
    a stretch with values that are not finite the first of those, and one that is."""
    if len(points) <= most:
        return list(points)
    inner, stretches = points[1:-1], max(1, (most - 2) // 2)
    kept = {0, len(points) - 1}
    for number in range(stretches):
        first, end = number * len(inner) // stretches, (number + 1) * len(inner) // stretches
        known = [at for at in range(first, end) if inner[at].value is not None]
        if len(known) < end - first:
            lost = next(at for at in range(first, end) if inner[at].value is None)
            kept.update(1 + at for at in (lost, *known[:1]))
        elif known:
            kept.update(1 + at for at in _extremes(inner, known))
    return [points[at] for at in sorted(kept)]


def _extremes(points: Sequence[Point], indexes: Sequence[int]) -> tuple[int, int]:
    by_value = sorted(indexes, key=lambda at: points[at].value or 0.0)
    return by_value[0], by_value[-1]
