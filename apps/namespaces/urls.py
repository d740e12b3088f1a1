"""Addresses of the API of namespaces."""

from django.urls import URLPattern, URLResolver, path

from apps.namespaces import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("me/", views.MeView.as_view(), name="me"),
    path("namespaces/", views.NamespacesView.as_view(), name="namespaces"),
    path("namespaces/<uuid:namespace_id>/", views.NamespaceView.as_view(), name="namespace"),
    path("namespaces/<uuid:namespace_id>/members/", views.MembersView.as_view(), name="members"),
    path("namespaces/<uuid:namespace_id>/members/<uuid:user_id>/", views.MemberView.as_view(), name="member"),
    path("namespaces/<uuid:namespace_id>/quota/", views.QuotaView.as_view(), name="quota"),
]
