"""The pages of registered Spark clusters: all of them, adding one, and each with its check, changes and removal. No
master is asked from here: a worker does it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration.spark_uses import cores_held, users_of_cluster
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, words_of
from apps.jobs.launch.parts import ParsedField, WholeField
from apps.namespaces.named import ForNamespaces
from apps.spark import services
from apps.spark.models import CheckState, SparkCluster
from apps.spark.rules import LONGEST_SECRET
from apps.spark.selectors import cluster_named, clusters_visible_to
from yardmaster.job.spec_spark import LONGEST_NAME
from yardmaster.quantity import exact_bytes, parse_memory

AT_ONCE = 50
_LONGEST_LIST = 100_000
_TYPED = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
_TICK = {"class": "form-check-input"}


def _text(label: str, most: int, example: str, hint: str, *, required: bool = True) -> forms.CharField:
    widget = forms.TextInput(attrs={**_TYPED, "placeholder": example, "maxlength": most})
    return forms.CharField(label=label, max_length=most, required=required, widget=widget, help_text=hint)


def _number(label: str, hint: str) -> WholeField:
    widget = forms.TextInput(attrs={**_TYPED, "inputmode": "numeric", "placeholder": "no limit"})
    return WholeField(label=label, help_text=hint, widget=widget)


def _tick(label: str) -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False, widget=forms.CheckboxInput(attrs=_TICK))


class ClusterForm(ForNamespaces):
    """What administrators say of a cluster. What it means is decided by `apps.spark.rules`."""

    master = _text(
        "Master", 500, "spark://10.0.0.5:7077",
        "The master of a Spark standalone cluster. List standby masters, too: spark://one:7077,two:7077.",
    )  # fmt: skip
    driver_address = _text(
        "Address of this machine", 253, "10.0.0.10",
        "The IPv4 address or host name of the portal's machine, at which executors reach drivers on it (engine local). "
        "Drivers on other engines announce their own address.",
    )  # fmt: skip
    python = _text(
        "Python of executors",
        300,
        "python3",
        "Its name or path on the cluster's machines. It needs the same minor version as the Python of drivers.",
    )
    secret = forms.CharField(
        label="Secret", required=False, max_length=LONGEST_SECRET, strip=False,
        widget=forms.PasswordInput(attrs={**_TYPED, "autocomplete": "new-password"}),
        help_text="The cluster's spark.authenticate.secret. It is not shown again. Leave empty if there is none.",
    )  # fmt: skip
    most_executors = _number("Maximum executors per job", "")
    most_cores = _number("Maximum cores per job", "For all executors of a job together.")
    most_memory = ParsedField(
        parse_memory, label="Maximum memory per job", help_text="For all executors of a job together, such as 64Gi.",
        widget=forms.TextInput(attrs={**_TYPED, "placeholder": "no limit"}),
    )  # fmt: skip
    most_cores_at_once = _number(
        "Maximum cores of all jobs", "A job that needs more cores than are left waits in the queue."
    )
    everyone = _tick("All namespaces may use it")
    namespaces = _text(
        "Namespaces that may use it", _LONGEST_LIST, "vision-team", "Applies if not all namespaces may.", required=False
    )  # fmt: skip
    enabled = _tick("New jobs may use it")

    def facts(self) -> dict[str, Any]:
        """What was said, without the name and the namespaces."""
        return {name: self.cleaned_data.get(name) for name in (*services.CHANGEABLE, "secret")}


class NewClusterForm(ClusterForm):
    name = _text("Name", LONGEST_NAME, "analytics", "Used in jobs. It cannot be changed later.")
    field_order = ("name",)


class ChangeClusterForm(ClusterForm):
    no_secret = _tick("Remove the stored secret")

    def __init__(self, *args: Any, has_secret: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if has_secret:
            self.fields["secret"].help_text = "Leave empty to keep the stored secret."
        else:
            del self.fields["no_secret"]
        names = list(self.fields)
        if has_secret:
            names.insert(names.index("secret") + 1, names.pop(names.index("no_secret")))
        self.order_fields(names)

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        if self.cleaned_data.get("no_secret"):
            return facts | {"secret": ""}
        return facts if facts["secret"] else {key: value for key, value in facts.items() if key != "secret"}


@administrators_only
@require_http_methods(["GET", "HEAD"])
def spark_clusters_page(request: HttpRequest) -> HttpResponse:
    """Which there are, who may use them, and how much of them is taken."""
    page = page_of(clusters_visible_to(user_of(request)), request.GET.get("cursor"), AT_ONCE)
    held = cores_held(list(page.rows)) if page.rows else {}
    context = {
        "page": page, "rows": [(one, held[one.name]) for one in page.rows],
        "is_checking": any(one.state == CheckState.CHECKING for one in page.rows),
    }  # fmt: skip
    part = request.headers.get("HX-Target") == "spark-rows"
    template = "administration/parts/spark_rows.html" if part else "administration/spark_clusters.html"
    return render(request, template, context)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def spark_cluster_new(request: HttpRequest) -> HttpResponse:
    user, posted = user_of(request), request.POST if request.method == "POST" else None
    form = NewClusterForm(posted, initial={"everyone": True, "enabled": True, "python": "python3"})
    if form.is_bound and form.is_valid():
        name = form.cleaned_data["name"]
        try:
            namespaces = form.namespaces_said(user)
            services.cluster_create(name=name, facts=form.facts(), namespaces=namespaces, actor=user)
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            messages.success(request, f"Registered the Spark cluster {name}. Its master is being checked.")
            return redirect("admin_spark_cluster_page", name)
    context = {"form": form, "breadcrumbs": _above()}
    return render(request, "administration/spark_cluster_new.html", context, status=400 if form.errors else 200)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def spark_cluster_page(request: HttpRequest, name: str) -> HttpResponse:
    """One cluster: its check, and a form that changes it."""
    user, posted = user_of(request), request.POST if request.method == "POST" else None
    found = cluster_named(user, name)
    form = ChangeClusterForm(posted, initial=_said_of(found), has_secret=found.has_secret)
    if form.is_bound and form.is_valid():
        try:
            namespaces = form.namespaces_said(user)
            services.cluster_change(cluster=found, facts=form.facts(), namespaces=namespaces, actor=user)
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            messages.success(request, f"Saved the Spark cluster {name}. Tasks that start later use the new values.")
            return redirect("admin_spark_cluster_page", name)
    context = {
        "cluster": found, "form": form, "held": cores_held([found])[found.name], "used_by": users_of_cluster(found),
        "breadcrumbs": _above(),
    }  # fmt: skip
    if request.headers.get("HX-Target") == "spark-state":
        return render(request, "administration/parts/spark_state.html", context)
    return render(request, "administration/spark_cluster.html", context, status=400 if form.errors else 200)


@administrators_only
@require_POST
def spark_cluster_check(request: HttpRequest, name: str) -> HttpResponse:
    user = user_of(request)
    services.cluster_check(cluster=cluster_named(user, name), actor=user)
    return redirect("admin_spark_cluster_page", name)


@administrators_only
@require_POST
def spark_cluster_remove(request: HttpRequest, name: str) -> HttpResponse:
    user = user_of(request)
    found = cluster_named(user, name)
    try:
        services.cluster_delete(cluster=found, actor=user, used_by=users_of_cluster(found))
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("admin_spark_cluster_page", name)
    messages.success(request, f"Removed the Spark cluster {name}. Nothing was changed on its machines.")
    return redirect("admin_spark_clusters_page")


def _said_of(cluster: SparkCluster) -> dict[str, Any]:
    said = {name: getattr(cluster, name) for name in services.CHANGEABLE}
    memory = cluster.most_memory
    names = ", ".join(sorted(one.slug for one in cluster.namespaces.all()))
    return said | {"most_memory": None if memory is None else exact_bytes(memory), "namespaces": names}


def _above() -> list[tuple[str, str]]:
    return [(reverse("admin_spark_clusters_page"), "Spark clusters")]


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/spark-clusters/", spark_clusters_page, name="admin_spark_clusters_page"),
    path("admin/spark-clusters/new/", spark_cluster_new, name="admin_spark_cluster_new_page"),
    path("admin/spark-clusters/cluster/<str:name>/", spark_cluster_page, name="admin_spark_cluster_page"),
    path("admin/spark-clusters/cluster/<str:name>/check/", spark_cluster_check, name="admin_spark_cluster_check"),
    path("admin/spark-clusters/cluster/<str:name>/remove/", spark_cluster_remove, name="admin_spark_cluster_remove"),
]
