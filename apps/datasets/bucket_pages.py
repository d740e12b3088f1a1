"""The page of a namespace's registered buckets: a form for another one, and how the scans stand."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.buckets.models import Bucket, State
from apps.datasets.registering import bucket_for, bucket_of, bucket_register, bucket_rescan, credentials_for
from apps.datasets.selectors import DATASETS
from apps.errors import DomainError, Invalid, NotFound
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may
from apps.uploads.versioned.selectors import collection_for

AT_ONCE = 20


class BucketForm(forms.Form):
    name = forms.CharField(label="Dataset name", max_length=100)
    bucket = forms.CharField(label="Bucket", max_length=63)
    folder = forms.CharField(
        label="Folder", max_length=512, required=False, help_text="Its objects only. Empty: the whole bucket."
    )
    endpoint = forms.CharField(label="Server", max_length=300, required=False)
    region = forms.CharField(label="Region", max_length=63, initial="us-east-1", required=False)
    secret = forms.CharField(label="Credentials", max_length=128)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def buckets(request: HttpRequest) -> HttpResponse:
    """Those of the namespace that one works in."""
    user, namespace = user_of(request), current_namespace(request)
    form = BucketForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        sent = form.cleaned_data | {"region": form.cleaned_data["region"] or "us-east-1"}
        sent["prefix"] = sent.pop("folder")
        try:
            made = bucket_register(namespace=namespace, user=user, **sent)
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            messages.success(request, f"{made.address} is being scanned.")
            return redirect("buckets_page")
    return _page(request, user, namespace, form)


def _page(request: HttpRequest, user: User, namespace: Namespace, form: BucketForm) -> HttpResponse:
    rows = Bucket.objects.filter(namespace=namespace).select_related("secret")
    page = page_of(rows, request.GET.get("cursor"), AT_ONCE)
    context = {
        "breadcrumbs": [(reverse("datasets_page"), "Datasets")],
        "namespace": namespace,
        "form": form,
        "page": page,
        "is_scanning": any(one.state == State.SCANNING for one in page.rows),
        "endpoints": settings.YARDMASTER_BUCKET_ENDPOINTS,
        "may_name_any": user.is_staff,
        "credentials": list(credentials_for(user, namespace).order_by("name").values_list("name", flat=True)),
        "may_change": may(user, namespace, Role.MEMBER) and namespace.closed_at is None,
    }
    part = bool(request.headers.get("HX-Request"))
    return render(request, "datasets/bucket_rows.html" if part else "datasets/buckets.html", context)


@login_required
@require_POST
def bucket_scan_again(request: HttpRequest, bucket_id: UUID) -> HttpResponse:
    user, secret = user_of(request), request.POST.get("secret", "")
    try:
        bucket_rescan(bucket=bucket_for(user, bucket_id), user=user, secret=secret)
    except Invalid as problem:
        messages.error(request, str(problem))
    return redirect("buckets_page")


@login_required
@require_POST
def dataset_scan_again(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """The same from the dataset's own page."""
    user = user_of(request)
    bucket = bucket_of(collection_for(DATASETS, user, collection_id, at_least=Role.MEMBER))
    if bucket is None:
        raise NotFound("This dataset was uploaded, not registered from a bucket.")
    bucket_rescan(bucket=bucket, user=user)
    return redirect(f"{reverse('buckets_page')}?namespace={bucket.namespace.slug}")


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/buckets/", buckets, name="buckets_page"),
    path("datasets/buckets/<uuid:bucket_id>/scan/", bucket_scan_again, name="bucket_scan_again"),
    path("datasets/<uuid:collection_id>/scan/", dataset_scan_again, name="dataset_scan_again"),
]
