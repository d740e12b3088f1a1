"""Static files under names that hold their content's hash: browsers keep them for ever, and never an old one."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise leaves it untyped
    """Like WhiteNoise's, but a file that was not collected keeps its plain name: before the assets are built pages lack
    style, and are not errors."""

    def stored_name(self, name: str) -> str:
        return str(self.hashed_files.get(self.hash_key(self.clean_name(name)), name))
