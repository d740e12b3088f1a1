"""The operations of the API, as its schema has them."""

from __future__ import annotations

from functools import cache

from drf_spectacular.generators import SchemaGenerator


@cache
def operations() -> dict[str, tuple[str, str]]:
    """Method and path by `operationId`."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return {
        one["operationId"]: (method, path)
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
    }
