"""The launch form. It works by plain POST, and remembers everything; with scripts the same answers come in parts.

`take` in a POST says which button was pressed: none launches, the others change the form. Not here: what the form means
(`launch_form`), how it looks (`launch_shown`), whether the job would run (`launch_check`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.models import User
from apps.api.problems import ApiProblem, NotFound
from apps.code.shelf import CODE
from apps.datasets.shelf import DATASETS
from apps.jobs import launch_choices as choices
from apps.jobs.engine_list import engines_for
from apps.jobs.launch_check import Verdict, verdict_of, verdict_of_hopeless
from apps.jobs.launch_form import (
    Reading,
    Values,
    new_values,
    read,
    values_of_post,
    values_of_spec,
    with_shape,
    with_strategy,
)
from apps.jobs.launch_shown import PRESETS, FormShown, cluster_words
from apps.jobs.launch_yaml import command_of, job_as_yaml, job_of_yaml
from apps.jobs.manifests import manifests_of_spec, yaml_file
from apps.jobs.models import Job
from apps.jobs.never import NeverFits
from apps.jobs.selectors import job_for
from apps.jobs.services import job_launch
from apps.jobs.specs import asked_spec
from apps.namespaces.context import current_namespace, own_namespaces
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.spec import Strategy, TrainingSpec
from yardmaster.spec_stored import stored_spec

Made = TypeVar("Made")
WARNINGS_TOLD = 3
_FIRST = Strategy.BETWEEN_GRAPH


@dataclass(frozen=True)
class Answer:
    """What a request made of the form."""

    values: Values
    problems: Sequence[Problem] = ()
    empty_inputs: int = 1
    yaml: str | None = None
    """The text of the job file, where it is the reader's own and shall stay as it is."""
    yaml_problems: Sequence[Problem] = ()
    fill: bool = True
    """Whether fields that are empty get what is likeliest. Not while the reader types, nor in what was refused."""
    status: int = 200
    never: Verdict | None = None
    """The job can never start: asked, before it is queued, whether that is meant."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    user = _user(request)
    if request.method != "POST":
        return _page(request, user, Answer(_first_values(request, user)))
    values = values_of_post(request.POST.dict())
    if request.POST.get("take"):
        answer = _taken(request, user, values, request.POST["take"])
        return (
            _part(request, user, answer, fields=True) if _is_htmx(request) else _page(request, user, answer, check=True)
        )
    made = _launched(request, user, values)
    return redirect("job_page", job_id=made.pk) if isinstance(made, Job) else _page(request, user, made)


@login_required
@require_POST
def manifests(request: HttpRequest) -> HttpResponse:
    """What the engine would make of the form, as a file; where it makes nothing, the form with what is wrong."""
    user, values = _user(request), values_of_post(request.POST.dict())

    def shown(reading: Reading) -> HttpResponse:
        namespace = namespace_for(user, values.get("namespace"), at_least=Role.MEMBER)
        found = manifests_of_spec(user, namespace, _spec_of(reading), values.get("engine") or None)
        return yaml_file(found, "job.yaml")

    made = _tried(values, shown)
    return _page(request, user, made) if isinstance(made, Answer) else made


@login_required
@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """What stands beside the form while one types: the verdict, the file, the command, the words of each section."""
    return _part(request, _user(request), Answer(values_of_post(request.POST.dict()), fill=False), fields=False)


def _first_values(request: HttpRequest, user: User) -> Values:
    """A new form, or that of an older job; with the code and data that the address names."""
    query = request.GET
    if query.get("from"):
        values = _values_of_job(request, user, query["from"])
    else:
        known = [one.value for one in Strategy]
        strategy = query["preset"] if query.get("preset") in known else _FIRST.value
        values = new_values(Strategy(strategy)) | {"namespace": current_namespace(request).slug}
    if version := query.get("code_version") or choices.newest_of(user, CODE, query.get("code", "")):
        values["code"] = version
    if version := query.get("dataset_version") or choices.newest_of(user, DATASETS, query.get("dataset", "")):
        values |= {"inputs.0.dataset_version": version, "inputs.0.name": ""}
    return values


def _values_of_job(request: HttpRequest, user: User, job_id: str) -> Values:
    job = job_for(user, job_id)
    mine = {one.pk for one in _launchable(request)}
    namespace = job.namespace if job.namespace_id in mine else current_namespace(request)
    return values_of_spec(stored_spec(job.spec)) | {"namespace": namespace.slug, "engine": job.engine}


def _taken(request: HttpRequest, user: User, values: Values, take: str) -> Answer:
    """The form after one of its buttons was pressed."""
    what, _, rest = take.partition(":")
    match what:
        case "preset" if values.get("strategy") in [one.value for one in Strategy]:
            return Answer(_with_own_script(user, with_strategy(values, values["strategy"])))
        case "code":
            return Answer(values | {"entry_point": ""})
        case "input":
            return Answer(values, empty_inputs=2)
        case "shape":
            pairs = (pair.partition("=") for pair in rest.split(","))
            return Answer(with_shape(values, {role: int(n) for role, _, n in pairs if n.isdecimal() and len(n) < 6}))
        case "yaml":
            return _of_yaml(request, user, values, request.POST.get("yaml", ""))
    return Answer(values)


def _with_own_script(user: User, values: Values) -> Values:
    """The script that is named after the strategy in the place of one named after another: `single.py` was for that."""
    names = {f"{one.value}.py" for one in Strategy}
    if values.get("entry_point", "").rpartition("/")[2] not in names:
        return values
    likely = choices.likely_script(choices.scripts_of(user, values.get("code", "")), values["strategy"])
    return values | {"entry_point": likely} if likely.rpartition("/")[2] in names else values


def _of_yaml(request: HttpRequest, user: User, values: Values, text: str) -> Answer:
    """The form that the job file says; where it says none, the form stays, and the file with what is wrong in it."""
    try:
        file = job_of_yaml(text)
        namespace = namespace_for(user, file.namespace or values.get("namespace"))
        spec = asked_spec(choices.versions_resolve(user, file.spec, namespace))
    except SpecRejected as error:
        return Answer(values, yaml=text, yaml_problems=error.problems)
    except ApiProblem as problem:
        return Answer(values, yaml=text, yaml_problems=[_as_problem(problem)])
    place = {"namespace": namespace.slug, "engine": file.engine or ""}
    return Answer(values_of_spec(spec) | place, yaml=text, empty_inputs=0 if spec.inputs else 1)


def _launched(request: HttpRequest, user: User, values: Values) -> Job | Answer:
    """The job, or the form with everything that is wrong."""

    def launched(reading: Reading) -> Job:
        spec = _spec_of(reading)
        namespace = namespace_for(user, values.get("namespace"), at_least=Role.MEMBER)
        job, warnings = job_launch(
            user=user, namespace=namespace, spec=spec, engine=values.get("engine") or None,
            request_key=_request_key(request, user, reading, values),
            accept_never_fits=request.POST.get("accept_never_fits") == _digest_of(reading, values),
        )  # fmt: skip
        messages.success(request, f"Launched {job.name}.")
        for warning in warnings[:WARNINGS_TOLD]:
            messages.warning(request, f"{warning.message} {warning.remedy}")
        return job

    return _tried(values, launched)


def _tried(values: Values, action: Callable[[Reading], Made]) -> Made | Answer:
    """What comes of the form, or the form with what is wrong in it."""
    reading = read(values)
    try:
        return action(reading)
    except SpecRejected as error:
        problems = dict.fromkeys([*reading.problems, *error.problems])
        return Answer(values, list(problems), fill=False, status=422)
    except NeverFits as problem:
        return Answer(values, fill=False, status=problem.status, never=verdict_of_hopeless(problem.found))
    except ApiProblem as problem:
        return Answer(values, [_as_problem(problem)], fill=False, status=problem.status)
    except YardmasterError as error:
        return Answer(values, [Problem("", error.code, error.message, error.remedy)], fill=False, status=503)


def _spec_of(reading: Reading) -> TrainingSpec:
    """Raises `SpecRejected` with everything that is wrong."""
    spec = asked_spec(reading.spec)
    if reading.problems:
        raise SpecRejected(reading.problems)
    return spec


def _request_key(request: HttpRequest, user: User, reading: Reading, values: Values) -> str:
    """The same for the same form sent twice: pressing the button twice makes one job, changing the form another."""
    whole = f"{user.pk}\n{request.POST.get('form', secrets.token_hex(16))}\n{_digest_of(reading, values)}"
    return f"page:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _digest_of(reading: Reading, values: Values) -> str:
    """Stands for what the form says: what was accepted of one job is not accepted of another."""
    said = json.dumps([reading.spec, values.get("namespace"), values.get("engine")], sort_keys=True)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _page(request: HttpRequest, user: User, answer: Answer, *, check: bool = False) -> HttpResponse:
    """The whole page; with the verdict where it is asked for: a script asks by itself."""
    context = _context(request, user, answer) | {"form_id": secrets.token_hex(16)}
    if check:
        context |= _verdict(request, user, context)
    return render(request, "jobs/launch.html", context, status=answer.status)


def _part(request: HttpRequest, user: User, answer: Answer, *, fields: bool) -> HttpResponse:
    context = _context(request, user, answer)
    context |= _verdict(request, user, context)
    template = "jobs/parts/launch_taken.html" if fields else "jobs/parts/launch_beside.html"
    return render(request, template, context)


def _verdict(request: HttpRequest, user: User, context: dict[str, Any]) -> dict[str, Any]:
    values = context["form"].values
    verdict = verdict_of(user, _namespace(request, user, values), context["reading"], values.get("engine", ""))
    return {"verdict": verdict, "missing": FormShown(values, verdict.problems)}


def _context(request: HttpRequest, user: User, answer: Answer) -> dict[str, Any]:
    values = dict(answer.values)
    namespace = _namespace(request, user, values)
    values["namespace"] = namespace.slug
    codes = choices.code_choices(user, [values.get("code", "")])
    if answer.fill and not values.get("code") and (newest := choices.newest_in(codes, namespace.slug)):
        values["code"] = newest.id
    scripts = choices.scripts_of(user, values.get("code", ""))
    if answer.fill:
        values["entry_point"] = values.get("entry_point") or choices.likely_script(scripts, values.get("strategy", ""))
        values["name"] = values.get("name") or next((one.name for one in codes if one.id == values.get("code")), "")
    datasets = choices.dataset_choices(user, _chosen_datasets(values))
    engines = engines_for(user)
    reading = read(values)
    names = choices.references([*codes, *datasets], namespace.slug)
    text = job_as_yaml(reading.spec, namespace=namespace.slug, engine=values.get("engine", ""), names=names)
    meant = next((one for one in engines if _is_meant(one.name, one.is_default, values)), None)
    return {
        "form": FormShown(values, answer.problems, answer.empty_inputs),
        "reading": reading,
        "never": answer.never,
        "digest": _digest_of(reading, values) if answer.never else "",
        "presets": PRESETS,
        "codes": choices.grouped(codes, namespace.slug),
        "scripts": scripts,
        "datasets": choices.grouped(datasets, namespace.slug),
        "engines": engines,
        "refusal": None if meant is None or meant.allowed else meant,
        "devices": meant.devices if meant else (),
        "unreached": meant if meant and meant.allowed and meant.tasks_reach_portal is False else None,
        "launchable": _launchable(request),
        "yaml": text if answer.yaml is None else answer.yaml,
        "yaml_is_own": answer.yaml is not None,
        "yaml_problems": answer.yaml_problems,
        "command": command_of(text),
        "words": cluster_words(values),
    }


def _is_meant(name: str, is_default: bool, values: Values) -> bool:
    asked = values.get("engine", "")
    return name == asked if asked else is_default


def _chosen_datasets(values: Values) -> Iterable[str]:
    return [value for name, value in values.items() if name.endswith(".dataset_version")]


def _namespace(request: HttpRequest, user: User, values: Values) -> Namespace:
    """The one that the form names, where the user may see it; else the one he works in."""
    asked = values.get("namespace", "")
    found = next((one for one in _launchable(request) if one.slug == asked), None)
    if found is None and asked:
        with suppress(NotFound):
            return namespace_for(user, asked)
    return found or current_namespace(request)


def _launchable(request: HttpRequest) -> list[Namespace]:
    """The namespaces in which the user may launch."""
    viewer = Role.VIEWER.value
    mine = [
        one for one in own_namespaces(request) if getattr(one, "my_role", None) != viewer or _user(request).is_staff
    ]
    here = current_namespace(request)
    return mine if here in own_namespaces(request) else [*mine, here]


def _as_problem(problem: ApiProblem) -> Problem:
    return Problem("", problem.code, problem.detail, problem.remedy)


def _is_htmx(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/launch/", launch, name="launch_page"),
    path("jobs/launch/preview/", preview, name="launch_preview"),
    path("jobs/launch/manifests/", manifests, name="launch_manifests"),
]
