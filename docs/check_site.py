"""Check the built site: ``python -m docs.check_site FOLDER``.

Links within it lead somewhere, no page shows TeX that was not rendered, and no page lists a name
twice in its navigation or loads something from elsewhere. What is wrong is printed, and the exit
status is 1.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

RAW_TEX = re.compile(r"\$\$|\\frac|\\begin\{|\\mathbb|\\lambda")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Page(HTMLParser):
    """The anchors, links, loaded addresses, visible TeX and navigation of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tex: list[str] = []
        self.navigation: list[str] = []
        self._open: list[str] = []  # what each open element is to us
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element says, and what it is to us."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given["id"]} if "id" in given else set()
        classes = given.get("class", "").split()
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loads = tag == "script" or (tag == "link" and given.get("rel") == "stylesheet")
        self.loaded += [given[name] for name in ("src", "href") if loads and name in given]
        kind = ""
        if tag in ("script", "style", "pre", "code") or "math" in classes:
            kind = "literal"
        elif tag == "nav" and "bd-links" in classes:
            kind = "navigation"
        elif tag == "a" and "navigation" in self._open:
            kind = "entry"
            self.navigation.append("")
        if tag not in VOID:
            self._open.append(kind)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag not in VOID and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Note names of the navigation, and TeX that nothing renders."""
        if "entry" in self._open:
            self.navigation[-1] += data.strip()
        if "literal" not in self._open:
            self.tex += RAW_TEX.findall(data)


def check(site: Path) -> Iterator[str]:
    """Yield what is wrong with each page."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    for path, page in sorted(pages.items()):
        name = path.relative_to(site)
        for link in page.links:
            address, anchor = urldefrag(unquote(link))
            if re.match(r"\w+:", address):
                continue
            target = (path.parent / address).resolve() if address else path
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif anchor and target in pages and anchor not in pages[target].ids:
                yield f"{name}: {link} has no such anchor"
        if page.tex:
            yield f"{name} shows TeX: {' '.join(page.tex)}"
        twice = {one for one in page.navigation if page.navigation.count(one) > 1}
        if twice:
            yield f"{name} lists twice: {', '.join(sorted(twice))}"
        for address in page.loaded:
            if re.match(r"(https?:)?//", address):
                yield f"{name} loads {address}"


if __name__ == "__main__":
    faults = list(check(Path(sys.argv[1]).resolve()))
    print("\n".join(faults) or "The site has no faults.")
    sys.exit(bool(faults))
