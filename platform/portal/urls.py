"""Every address of the portal. Each app owns its own; all of the API lies under `/api/v1/`."""

from django.urls import URLPattern, URLResolver, include, path

from apps.api.outside import unknown_address
from apps.api.readiness import healthz, readyz

API_APPS = (
    "api",
    "accounts",
    "administration",
    "uploads",
    "datasets",
    "code",
    "jobs",
    "logs",
    "registry",
    "removals",
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include([path("", include(f"apps.{name}.urls")) for name in API_APPS])),
    path("api/<path:rest>", unknown_address),
    path("storage/", include("apps.uploads.storage_urls")),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("", include("portal.pages")),
]
handler400 = "apps.api.outside.bad_request"
handler403 = "apps.api.outside.permission_denied"
handler404 = "apps.api.outside.not_found"
handler500 = "apps.api.outside.server_error"
