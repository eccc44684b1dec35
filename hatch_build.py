"""The package's URLs, from the address of its repository in pyproject.toml.

A build for a release, with GEDI_SKLEARN_RELEASE=1 in the environment, fails while that is not set.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectURLs(MetadataHookInterface):
    """Adds the URLs to the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add them, where the address is set."""
        with (Path(self.root) / "pyproject.toml").open("rb") as file:
            repository = tomllib.load(file)["tool"]["gedi-sklearn"]["repository"]
        if repository:
            metadata["urls"] = {
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            }
        elif os.environ.get("GEDI_SKLEARN_RELEASE"):
            raise ValueError(
                "tool.gedi-sklearn.repository in pyproject.toml is empty: set it to the address of "
                "the repository before a release is built."
            )
