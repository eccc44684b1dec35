"""The picture of the README: that of the gallery's first story.

``python -m benchmarks.readme_picture`` runs the story and writes ``docs/_static/premium.png``.
"""

import runpy
from pathlib import Path

import matplotlib

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    matplotlib.use("Agg")
    story = runpy.run_path(str(DOCS / "gallery" / "plot_1_premium.py"))
    story["figure"].savefig(DOCS / "_static" / "premium.png", dpi=90)


if __name__ == "__main__":
    main()
