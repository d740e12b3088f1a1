"""Addresses of the API of namespaces, their members, quotas and use, and of the audit."""

from django.urls import URLPattern, URLResolver, path

from apps.administration import namespace_views as views
from apps.administration.audit_views import AuditExportView, AuditView
from apps.administration.usage_views import UsageView

urlpatterns: list[URLPattern | URLResolver] = [
    path("me/", views.MeView.as_view(), name="me"),
    path("namespaces/", views.NamespacesView.as_view(), name="namespaces"),
    path("namespaces/<uuid:namespace_id>/", views.NamespaceView.as_view(), name="namespace"),
    path("namespaces/<uuid:namespace_id>/members/", views.MembersView.as_view(), name="members"),
    path("namespaces/<uuid:namespace_id>/members/<uuid:user_id>/", views.MemberView.as_view(), name="member"),
    path("namespaces/<uuid:namespace_id>/quota/", views.QuotaView.as_view(), name="quota"),
    path("usage/", UsageView.as_view(), name="usage"),
    path("audit/", AuditView.as_view(), name="audit"),
    path("audit/export/", AuditExportView.as_view(), name="audit-export"),
]
