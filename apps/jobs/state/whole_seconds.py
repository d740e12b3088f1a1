"""A time of the database as whole Unix seconds, the same on PostgreSQL and SQLite: for sums and differences."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, Func


class WholeSeconds(Func):
    """A time as Unix seconds, cut to whole ones."""

    template = "FLOOR(EXTRACT(EPOCH FROM %(expressions)s))::bigint"
    output_field = BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Escaped twice, for the template and for its parameters. The first 19 characters: SQLite would round the
        # fraction to milliseconds first.
        template = "CAST(strftime('%%%%s', substr(%(expressions)s, 1, 19)) AS INTEGER)"
        return self.as_sql(compiler, connection, template=template, **context)
