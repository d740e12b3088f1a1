"""Addresses of the API of people."""

from django.urls import URLPattern, URLResolver, path

from apps.accounts import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("auth/token/", views.PasswordForTokenView.as_view(), name="auth-token"),
    path("tokens/", views.TokensView.as_view(), name="tokens"),
    path("tokens/current/", views.CurrentTokenView.as_view(), name="current-token"),
    path("tokens/<uuid:token_id>/", views.TokenView.as_view(), name="token"),
    path("users/", views.UsersView.as_view(), name="users"),
    path("users/<uuid:user_id>/", views.UserView.as_view(), name="user"),
    path("users/<uuid:user_id>/tokens/", views.UserTokensView.as_view(), name="user-tokens"),
    path("users/<uuid:user_id>/sign-in-link/", views.UserSignInLinkView.as_view(), name="user-sign-in-link"),
]
