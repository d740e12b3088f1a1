"""The database refuses to change or delete audit events: triggers of PostgreSQL and SQLite.

Allowed is what the portal does: a row that stands for several counts up, and events go that are older than the
retention, while `AuditRetention` says so. Who owns the database can drop a trigger: the portal's own code, its pages,
and a slip in a shell cannot change the audit, an operator who means to still can. Not here: which events are old
(`services.events_clean`).
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

EVENTS, RETENTION = "audit_auditevent", "audit_auditretention"
CHANGED = "An audit event is never changed."
DELETED = "An audit event is deleted by the retention alone (YARDMASTER_AUDIT_DAYS)."
_SAME = (
    "id", "at", "actor_id", "actor_name", "action", "subject", "namespace_id", "facts", "address", "agent",
    "repeat_key",
)  # fmt: skip

_POSTGRES = f"""
CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF OLD.repeat_key IS NOT NULL AND NEW.count > OLD.count
           AND to_jsonb(NEW) - 'count' = to_jsonb(OLD) - 'count' THEN
            RETURN NEW;
        END IF;
        RAISE EXCEPTION '{CHANGED}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT 1 FROM {RETENTION} WHERE until > OLD.at) THEN
            RETURN OLD;
        END IF;
    ELSIF NOT EXISTS (SELECT 1 FROM {EVENTS}) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '{DELETED}' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE OR REPLACE TRIGGER audit_refuse_change BEFORE UPDATE OR DELETE ON {EVENTS}
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE OR REPLACE TRIGGER audit_refuse_truncate BEFORE TRUNCATE ON {EVENTS}
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
"""

_SQLITE = (
    f"""
CREATE TRIGGER IF NOT EXISTS audit_refuse_change BEFORE UPDATE ON {EVENTS}
WHEN NOT (OLD.repeat_key IS NOT NULL AND NEW.count > OLD.count
          AND {" AND ".join(f"NEW.{name} IS OLD.{name}" for name in _SAME)})
BEGIN SELECT RAISE(ABORT, '{CHANGED}'); END
""",
    f"""
CREATE TRIGGER IF NOT EXISTS audit_refuse_delete BEFORE DELETE ON {EVENTS}
WHEN NOT EXISTS (SELECT 1 FROM {RETENTION} WHERE until > OLD.at)
BEGIN SELECT RAISE(ABORT, '{DELETED}'); END
""",
)


def guard(connection: BaseDatabaseWrapper) -> None:
    """Put the triggers there. May be repeated: a migration that rebuilds the table on SQLite drops them with it, so
    that this is done after every `migrate`."""
    statements = [_POSTGRES] if connection.vendor == "postgresql" else list(_SQLITE)
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def unguard(connection: BaseDatabaseWrapper) -> None:
    """Take them away, for a migration that must change events. `guard` comes back with the next `migrate`."""
    on = f" ON {EVENTS}" if connection.vendor == "postgresql" else ""
    names = ["audit_refuse_change", "audit_refuse_truncate" if on else "audit_refuse_delete"]
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")


def guard_after_migrate(using: str, **facts: Any) -> None:
    """Receiver of Django's `post_migrate`; nothing where the tables are not there (yet)."""
    from django.db import connections

    connection = connections[using]
    if {EVENTS, RETENTION} <= set(connection.introspection.table_names()):
        guard(connection)
