"""Addresses of the API of models."""

from django.urls import URLPattern, URLResolver, path

from apps.registry import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", views.ModelsView.as_view(), name="models"),
    path("models/<uuid:model_id>/", views.ModelView.as_view(), name="model"),
]
