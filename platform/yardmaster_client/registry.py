"""Models: what every store can do, and stages, comparison, deleting with a grace period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from yardmaster_client.models import Model, ModelVersion, StageChange, read
from yardmaster_client.stores import Store
from yardmaster_client.transport import Transport


class Models(Store[Model, ModelVersion]):
    """The models that jobs exported to."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "model", Model, ModelVersion)

    def stage(self, version_id: str, stage: str, note: str = "") -> ModelVersion:
        """Give a version a stage: staging, production, archived, or none (an empty text)."""
        body = {"stage": stage, "note": note}
        return read(ModelVersion, self._transport.post(f"model-versions/{version_id}/stage/", body))

    def stages(self, model_id: str) -> Iterator[StageChange]:
        """The history of a model's stages, newest first."""
        return (read(StageChange, row) for row in self._transport.pages(f"models/{model_id}/stages/"))

    def compare(self, model_id: str, numbers: Sequence[int]) -> dict[str, Any]:
        """Versions side by side: `{"versions", "parts": [{"title", "rows": [{"name", "values", "differs"}]}]}`."""
        return dict(self._transport.get(f"models/{model_id}/compare/", version=list(numbers)))

    def deleted_versions(self, model_id: str) -> Iterator[ModelVersion]:
        """Those that can still be restored."""
        rows = self._transport.pages(f"models/{model_id}/versions/", deleted="true")
        return (read(ModelVersion, row) for row in rows)

    def remove(self, model_id: str, *, now: bool = False) -> None:
        """Delete a model. Until its grace period is over it can be restored; with `now` its files go at once."""
        self._transport.delete(f"models/{model_id}/{'?now=true' if now else ''}")

    def remove_version(self, version_id: str, *, now: bool = False) -> None:
        """Delete a version, in the same way."""
        self._transport.delete(f"model-versions/{version_id}/{'?now=true' if now else ''}")

    def restore(self, model_id: str) -> Model:
        return read(Model, self._transport.post(f"models/{model_id}/restore/", {}))

    def restore_version(self, version_id: str) -> ModelVersion:
        return read(ModelVersion, self._transport.post(f"model-versions/{version_id}/restore/", {}))
