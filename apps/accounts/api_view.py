"""What every view of the API for signed-in users begins with."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from django.db.models import QuerySet
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from apps.accounts.models import User

S = TypeVar("S", bound=BaseSerializer[Any])


class ApiView(GenericAPIView[Any]):
    """A view of one address. Views read the request, call one service or selector, and write the answer."""

    # The framework wants one in order to page; each view pages what its selector gives.
    queryset: QuerySet[Any] = User.objects.none()

    @property
    def user(self) -> User:
        """The caller; the permissions ensure that there is one."""
        return cast(User, self.request.user)

    def read(self, serializer: type[S]) -> S:
        """The request's body, checked. Raises the problem `invalid`."""
        found = serializer(data=self.request.data, context=self.get_serializer_context())
        found.is_valid(raise_exception=True)
        return found

    def page(self, rows: Any, serializer: type[BaseSerializer[Any]]) -> Response:
        """One page of the rows, in the order of the view's pages."""
        found = self.paginate_queryset(rows) or []
        return self.get_paginated_response(serializer(found, many=True, context=self.get_serializer_context()).data)
