"""The launch page. It works by plain POST, and loses nothing; with scripts the same answers come in parts.

`take` in a POST says which button was pressed: none launches, the others change the form. Not here: what the form means
(`forms`), what is shown beside it and whether the job would run (`preview`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.problems import status_of
from apps.errors import DomainError, NotFound, words_of
from apps.jobs.checking import NeverFits
from apps.jobs.engines.manifests import manifests_of_spec, yaml_file
from apps.jobs.engines.volumes import engines_with_volumes
from apps.jobs.launch import choices, making, preview
from apps.jobs.launch.connection_fields import names_offered
from apps.jobs.launch.entry_fields import of_kind, switched
from apps.jobs.launch.filling import Asks, filled
from apps.jobs.launch.fixes import with_fix
from apps.jobs.launch.forms import (
    STRATEGIES,
    LaunchForm,
    as_data,
    new_values,
    with_shape,
    with_strategy,
)
from apps.jobs.launch.from_git import hosts_shown
from apps.jobs.launch.image_choices import image_choices
from apps.jobs.launch.importing import Import, form_of_file, form_of_tfjob
from apps.jobs.launch.job_file import command_of, job_as_yaml
from apps.jobs.launch.parts import MODEL, Values
from apps.jobs.launch.preset_filling import offer_for, with_preset
from apps.jobs.launch.proposals import Proposed, as_text, proposed_in, without_proposals
from apps.jobs.launch.spec_values import values_of_spec
from apps.jobs.models import Job
from apps.jobs.selectors import facts_of, job_for
from apps.jobs.services import job_launch
from apps.jobs.state.specs import asked_spec
from apps.jobs.state.used_sizes import as_used
from apps.namespaces.context import current_namespace, own_namespaces
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.spark.selectors import clusters_for
from apps.stores import has_ignite
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_stored import stored_spec

Made = TypeVar("Made")
WARNINGS_SHOWN = 3
_FIRST = Strategy.BETWEEN_GRAPH.value


@dataclass(frozen=True)
class Answer:
    """What a request made of the form: new `values`, or the `refused` form with its errors."""

    values: Values
    refused: LaunchForm | None = None
    add: str = ""
    """The rows of which there is one more empty one."""
    yaml: str | None = None
    """The text of the job file, where it is the reader's own and shall stay as it is."""
    yaml_problems: Sequence[Problem] = ()
    fill: bool = True
    """Whether fields that are empty get what is likeliest. Not while the reader types, nor in what was refused."""
    status: int = 200
    proposed: Proposed | None = None
    """What the code may propose for: fields that are empty, and those that are as they were proposed. None: it is not
    asked."""
    sizes: bool = False
    """Whether roles that have the sizes of every new form get what this script used before."""
    imported: Import | None = None
    """What a TFJob made of it."""
    never: preview.Verdict | None = None
    """The job can never start: asked, before it is queued, whether that is meant."""
    making: making.Asked | None = None
    namespace: Namespace | None = None
    """The one that is meant; None: the one that the values name."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    if request.method != "POST":
        return _page(request, user, _first(request, user))
    form = LaunchForm(request.POST)
    if take := request.POST.get("take"):
        answer = _taken(request, user, form.values(), take)
        if "HX-Request" in request.headers:
            return _part(request, user, answer, fields=True)
        return _page(request, user, answer, check=True)
    made = _launched(request, user, form)
    return redirect("job_page", job_id=made.pk) if isinstance(made, Job) else _page(request, user, made)


@login_required
@require_POST
def manifests(request: HttpRequest) -> HttpResponse:
    """What the engine would make of the form, as a file; where it makes nothing, the form with what is wrong."""
    user, form = user_of(request), LaunchForm(request.POST)

    def shown(spec: TrainingSpec, place: dict[str, str]) -> HttpResponse:
        namespace = namespace_for(user, place["namespace"] or None, at_least=Role.MEMBER)
        return yaml_file(manifests_of_spec(user, namespace, spec, place["engine"] or None), "job.yaml")

    made = _tried(form, shown)
    return _page(request, user, made) if isinstance(made, Answer) else made


@login_required
@require_POST
def preview_page(request: HttpRequest) -> HttpResponse:
    """What stands beside the form while one types: the verdict, the file, the command, the words of each section."""
    return _part(request, user_of(request), Answer(LaunchForm(request.POST).values(), fill=False), fields=False)


def launch_filled(
    request: HttpRequest, user: User, values: Values, *, namespace: Namespace | None = None, status: int = 200
) -> HttpResponse:
    """The launch form with these values: for pages that lead on to it. `namespace`: that of the job, where it was read
    already; else the one that the values name."""
    return _page(request, user, Answer(values, fill=False, namespace=namespace, status=status))


def _first(request: HttpRequest, user: User) -> Answer:
    values = _first_values(request, user)
    if request.GET.get("from"):
        return Answer(values)
    is_open = request.GET.get("preset") not in STRATEGIES
    return Answer(values, proposed={"strategy": values["strategy"]} if is_open else {}, sizes=True)


def _first_values(request: HttpRequest, user: User) -> Values:
    """A new form, or that of an older job; with the code and data that the address names."""
    query = request.GET
    if query.get("from"):
        values = _values_of_job(request, user, query["from"])
    else:
        strategy = query["preset"] if query.get("preset") in STRATEGIES else _FIRST
        values = new_values(strategy) | {"namespace": current_namespace(request).slug}
    if version := query.get("code_version") or choices.newest_of(user, "code", query.get("code", "")):
        values["code"] = version
    if version := query.get("dataset_version") or choices.newest_of(user, "dataset", query.get("dataset", "")):
        values["inputs"] = [{"dataset_version": version, "name": ""}, *values["inputs"][1:]]
    return values


def _values_of_job(request: HttpRequest, user: User, job_id: str) -> Values:
    job = job_for(user, job_id)
    mine = {one.pk for one in _launchable(request)}
    namespace = job.namespace if job.namespace_id in mine else current_namespace(request)
    spec = stored_spec(job.spec)
    if spec.program:  # the form would make another job of it
        messages.warning(request, f"{job.name} runs the program {spec.program}, which this form has no fields for.")
        return new_values(_FIRST) | {"namespace": namespace.slug}
    if request.GET.get("size") == "used":
        spec = as_used(spec, facts_of(job))
    return values_of_spec(spec) | {"namespace": namespace.slug, "engine": job.engine}


def _taken(request: HttpRequest, user: User, values: Values, take: str) -> Answer:
    """The form after one of its buttons was pressed."""
    what, _, rest = take.partition(":")
    match what:
        case "preset" if values["strategy"] in STRATEGIES:
            return Answer(_with_own_script(user, with_strategy(values, values["strategy"])), sizes=True)
        case "code":
            proposed = proposed_in(request.POST.get("proposed", ""))
            scripts = choices.scripts_of(user, values["code"])
            return Answer(without_proposals(values, proposed, scripts), proposed=proposed, sizes=True)
        case "runs":
            entries = of_kind(choices.scripts_of(user, values["code"]), values["runs"])
            return Answer(switched(values, entries))
        case "add":
            return Answer(values, add=rest)
        case "shape":
            pairs = (pair.partition("=") for pair in rest.split(","))
            return Answer(with_shape(values, {role: int(n) for role, _, n in pairs if n.isdecimal() and len(n) < 6}))
        case "fill":
            return Answer(with_preset(user, values, rest))
        case "fix":
            return Answer(with_fix(values, rest))
        case "import":
            found = form_of_tfjob(user, values, request.POST.get("tfjob", ""))
            return Answer(found.values, imported=found)
        case "make":
            made, asked = making.pressed(user, _namespace(request, user, values), values, rest)
            return Answer(made, making=asked)
        case "yaml":
            text = request.POST.get("yaml", "")
            found = form_of_file(user, values, text)
            return Answer(found.values, yaml=text, yaml_problems=found.problems)
    return Answer(values)


def _with_own_script(user: User, values: Values) -> Values:
    """The script that is named after the strategy in the place of one named after another: `single.py` was for that."""
    names = {f"{one}.py" for one in STRATEGIES}
    if values["entry_point"].rpartition("/")[2] not in names:
        return values
    likely = choices.likely_script(choices.scripts_of(user, values["code"]), values["strategy"])
    return values | {"entry_point": likely} if likely.rpartition("/")[2] in names else values


def _launched(request: HttpRequest, user: User, form: LaunchForm) -> Job | Answer:
    """The job, or the form with everything that is wrong."""

    def launched(spec: TrainingSpec, place: dict[str, str]) -> Job:
        namespace = namespace_for(user, place["namespace"] or None, at_least=Role.MEMBER)
        job, warnings = job_launch(
            user=user, namespace=namespace, spec=spec, engine=place["engine"] or None,
            request_key=_request_key(request, user, form),
            accept_never_fits=request.POST.get("accept_never_fits") == _digest_of(form),
        )  # fmt: skip
        messages.success(request, f"Launched {job.name}.")
        for warning in warnings[:WARNINGS_SHOWN]:
            messages.warning(request, f"{warning.message} {warning.remedy}")
        return job

    return _tried(form, launched)


def _tried(form: LaunchForm, action: Callable[[TrainingSpec, dict[str, str]], Made]) -> Made | Answer:
    """What the action makes of the specification and its place, or the form with everything that is wrong."""
    status, never = 422, None
    try:
        spec = asked_spec(form.spec)
        if form.is_valid():
            return action(spec, form.texts())
    except SpecRejected as error:
        form.add_problems(error.problems)
    except NeverFits as problem:
        status, never = status_of(problem), preview.verdict_of_decision(problem.decision)
    except DomainError as problem:
        form.add_error(None, words_of(problem))
        status = status_of(problem)
    except YardmasterError as error:
        form.add_error(None, words_of(error))
        status = 503
    return Answer(form.values(), form, fill=False, status=status, never=never)


def _request_key(request: HttpRequest, user: User, form: LaunchForm) -> str:
    """The same for the same form sent twice: pressing the button twice makes one job, changing the form another."""
    whole = f"{user.pk}\n{request.POST.get('form', secrets.token_hex(16))}\n{_digest_of(form)}"
    return f"page:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _digest_of(form: LaunchForm) -> str:
    """Stands for what the form says: what was accepted of one job is not accepted of another."""
    texts = form.texts()
    said = json.dumps([form.spec, texts["namespace"], texts["engine"]], sort_keys=True)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _page(request: HttpRequest, user: User, answer: Answer, *, check: bool = False) -> HttpResponse:
    """The whole page; with the verdict where it is asked for: a script asks by itself."""
    context = _context(request, user, answer, check=check) | {"form_id": secrets.token_hex(16)}
    return render(request, "jobs/launch/page.html", context, status=answer.status)


def _part(request: HttpRequest, user: User, answer: Answer, *, fields: bool) -> HttpResponse:
    context = _context(request, user, answer, check=True) | {"with_fields": fields}
    return render(request, "jobs/launch/beside.html", context)


def _offers(
    user: User, namespace: Namespace, engine: str, found: Mapping[str, Sequence[choices.Choice]]
) -> dict[str, Any]:
    """What the form offers, code and data in groups."""
    return {
        **{f"{noun}s": choices.grouped(some, namespace.slug) for noun, some in found.items()},
        "images": image_choices(namespace, engine),
        "has_volumes": bool(engines_with_volumes()),
        "has_ignite": has_ignite(),
        "classes": choices.priority_choices(user, namespace),
    }


def _chosen(values: Values) -> dict[str, list[str]]:
    """What the form names of each store."""
    inputs = [one["dataset_version"] for one in values["inputs"]]
    models = [one.removeprefix(MODEL) for one in inputs if one.startswith(MODEL)]
    return {"code": [values["code"]], "dataset": inputs, "model": models}


def _context(request: HttpRequest, user: User, answer: Answer, *, check: bool) -> dict[str, Any]:
    namespace = answer.namespace or _namespace(request, user, answer.values)
    found = choices.choices_of(user, _chosen(answer.values))
    start = answer.values | {"namespace": namespace.slug}
    known = proposed_in(request.POST.get("proposed", ""))
    asks = Asks(fill=answer.fill, sizes=answer.sizes, proposed=answer.proposed)
    values, proposed, used, entries, has_requirements = filled(start, namespace, found["code"], asks, known)
    said = answer.refused or LaunchForm(as_data(values))
    names = choices.references([*found["code"], *found["dataset"]], namespace.slug)
    text = job_as_yaml(said.spec, namespace=namespace.slug, engine=values["engine"], names=names)
    verdict = preview.verdict_of(user, namespace, said, _untouched(request)) if check else None
    form = answer.refused or LaunchForm(values=values, add=answer.add)
    form.offer(**_offers(user, namespace, values["engine"], found))
    secret_names, connections = names_offered(user, namespace)
    form.offer_connections(namespace.pk, connections)
    form.offer_clusters([one.name for one in clusters_for(namespace)] if form.is_spark else [])
    return {
        "form": form,
        "refused": answer.refused is not None,
        "used": {role: one for role, one in used.items() if role in values["roles"]},
        "verdict": verdict,
        "offer": making.offer_of(namespace, values, verdict, answer.making or making.asked_in(request.POST)),
        "summaries": preview.summaries(said),
        "words": preview.cluster_words(said),
        "never": answer.never,
        "digest": _digest_of(said) if answer.never else "",
        "presets": preview.PRESETS,
        "launch_presets": offer_for(user, request.POST.get("take", "")),
        "proposed": as_text(proposed),
        "codes": found["code"],
        "scripts": entries,
        "has_requirements": has_requirements and not values["requirements"].strip(),
        "launchable": _launchable(request),
        "portal": settings.PUBLIC_URL,
        "here": namespace.slug,
        "here_id": namespace.pk,
        "secret_names": secret_names,
        "git_hosts": hosts_shown(),
        "yaml": text if answer.yaml is None else answer.yaml,
        "yaml_is_own": answer.yaml is not None,
        "yaml_problems": answer.yaml_problems,
        "imported": answer.imported,
        "tfjob": request.POST.get("tfjob", ""),
        "command": command_of(text),
        **choices.engine_choices(user, values["engine"]),
    }


def _untouched(request: HttpRequest) -> set[str]:
    """The required fields of which a script says that the reader has not been there yet; without one, none."""
    touched = request.POST.get("touched")
    return set() if touched is None else set(preview.REQUIRED) - set(touched.split())


def _namespace(request: HttpRequest, user: User, values: Values) -> Namespace:
    """The one that the form names, where the user may see it; else the one they work in."""
    asked = values["namespace"]
    found = next((one for one in _launchable(request) if one.slug == asked), None)
    if found is None and asked:
        with suppress(NotFound):
            return namespace_for(user, asked)
    return found or current_namespace(request)


def _launchable(request: HttpRequest) -> list[Namespace]:
    """The namespaces in which the user may launch."""
    viewer = Role.VIEWER.value
    mine = [
        one for one in own_namespaces(request) if getattr(one, "my_role", None) != viewer or user_of(request).is_staff
    ]
    here = current_namespace(request)
    return mine if here in own_namespaces(request) else [*mine, here]


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/launch/", launch, name="launch_page"),
    path("jobs/launch/preview/", preview_page, name="launch_preview"),
    path("jobs/launch/manifests/", manifests, name="launch_manifests"),
]
