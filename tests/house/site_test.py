#!/usr/bin/env python3
"""The site: it is made without a broken link, and the search finds what newcomers look for.

Usage: site_test.py SOURCE
"""

import json
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

source = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(source / "scripts/site"))
from markdown import Page  # noqa: E402

made = Page("# A `b`\n\ntwo | words *c* and **d**, `x*y*z`\n- one\n  more\n- two\n\n| a | `b|c` |\n|---|---|\n| 1 | 2 |\n\n```toml\n<x>\n```\n",
            lambda target: target).html
for part in ('<h1 id="a-b">A <code>b</code></h1>', "<em>c</em> and <strong>d</strong>, <code>x*y*z</code>", "<li>\none\nmore\n</li>",
             "<th><code>b|c</code></th>", "<td>2</td>", '<pre class="toml"><code>&lt;x&gt;</code></pre>'):
    assert part in made, (part, made)


class Targets(HTMLParser):
    """What a page leads to and shows."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("href", "src") and value]


def best(words, sections):
    """The order of web search.js: a word in the title counts 5, in the text 1; all must be there."""
    score = lambda s: sum(5 * (w in s["title"].lower()) + (w in s["text"]) for w in words)
    return max((s for s in sections if all(w in s["title"].lower() or w in s["text"] for w in words)), key=score, default=None)


with tempfile.TemporaryDirectory() as folder:
    site = Path(folder) / "site"
    subprocess.run([sys.executable, source / "scripts/site/build.py", source, site], check=True, stdout=subprocess.DEVNULL)
    pages = list(site.rglob("*.html"))
    assert len(pages) > 90, len(pages)
    for page in pages:
        reader = Targets()
        reader.feed(page.read_text())
        for target in reader.found:
            path = target.partition("#")[0]
            if path and ":" not in path:
                assert (page.parent / path).exists(), (page.relative_to(site), target)
    sections = json.loads((site / "search.json").read_text())
    for question, place in ((["install"], "README.html#install"), (["bouncing", "restitution"], "docs/howto.html"),
                            (["bifurcation", "pdf"], "docs/howto.html"), (["nonunique", "mean"], "docs/howto.html"),
                            (["cite"], "docs/howto.html"), (["latch"], "docs/patterns.html")):
        found = best(question, sections)
        assert found and found["at"].startswith(place), (question, found)
    notebooks = sorted((site / "docs/notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 4, notebooks
    for notebook in notebooks:
        cells = json.loads(notebook.read_text())["cells"]
        code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        compile(code, notebook.name, "exec")
        assert "import saltus" in code and ">>>" not in code, notebook.name
    gallery = (site / "gallery.html").read_text()
    assert all(f"models/{m.parent.name}/README.html" in gallery for m in source.glob("models/*/model.toml"))
