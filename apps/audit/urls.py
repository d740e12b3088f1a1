"""Addresses of the API of the audit."""

from django.urls import URLPattern, URLResolver, path

from apps.audit.views import AuditExportView, AuditView

urlpatterns: list[URLPattern | URLResolver] = [
    path("audit/", AuditView.as_view(), name="audit"),
    path("audit/export/", AuditExportView.as_view(), name="audit-export"),
]
