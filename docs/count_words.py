"""Count the words of the guide: ``python -m docs.count_words``.

`guide_pages.txt` lists its pages; a word is what stands between spaces, code and tables
included. The exit status is 1 where there are more pages or words than the guide may have.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
MOST_PAGES, MOST_WORDS = 16, 18_000


def count() -> dict[str, int]:
    """Return the number of words of each page of the guide."""
    pages = (DOCS / "guide_pages.txt").read_text(encoding="utf-8").split()
    return {page: len((DOCS / f"{page}.md").read_text(encoding="utf-8").split()) for page in pages}


if __name__ == "__main__":
    words = count()
    for page, number in words.items():
        print(f"{number:6,}  {page}")
    total = sum(words.values())
    print(f"{total:6,}  words on {len(words)} pages (at most {MOST_WORDS:,} on {MOST_PAGES})")
    sys.exit(len(words) > MOST_PAGES or total > MOST_WORDS)
