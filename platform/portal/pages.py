"""The addresses of the pages that people see."""

from django.urls import URLPattern, URLResolver, include, path

from apps.accounts import pages as accounts

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/<str:token>/", accounts.sign_in_link, name="sign_in_link"),
    path("accounts/", include("allauth.urls")),
]
