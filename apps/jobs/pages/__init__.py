"""The pages of jobs. Each module has its own addresses in `urlpatterns`; one job's page is in `job`."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

from apps.jobs.launch import from_git
from apps.jobs.launch import pages as launch
from apps.jobs.pages import (
    columns,
    compare,
    engines,
    environments,
    job,
    kept,
    labels,
    listing,
    notebook,
    outputs,
    prepare,
    summaries,
    terminal,
    volume,
)  # fmt: skip

pages_urlpatterns: list[URLPattern | URLResolver] = [
    *listing.urlpatterns,
    *columns.urlpatterns,
    *compare.urlpatterns,
    *engines.urlpatterns,
    *environments.urlpatterns,
    *launch.urlpatterns,
    *from_git.urlpatterns,
    *job.urlpatterns,
    *kept.urlpatterns,
    *labels.urlpatterns,
    *outputs.urlpatterns,
    *notebook.urlpatterns,
    *prepare.urlpatterns,
    *summaries.urlpatterns,
    *terminal.urlpatterns,
    *volume.urlpatterns,
]
