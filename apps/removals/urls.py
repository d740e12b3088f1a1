"""Addresses of the API of removals."""

from django.urls import URLPattern, URLResolver, path

from apps.removals import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("removals/", views.RemovalsView.as_view(), name="removals"),
    path("removals/<uuid:removal_id>/", views.RemovalView.as_view(), name="removal"),
    path("users/<uuid:user_id>/lock/", views.UserLockView.as_view(), name="user-lock"),
    path("users/<uuid:user_id>/removal/", views.UserRemovalView.as_view(), name="user-removal"),
    path("namespaces/<uuid:namespace_id>/removal/", views.NamespaceRemovalView.as_view(), name="namespace-removal"),
]
