#!/usr/bin/env python3
"""The documentation as a site, from the Markdown that the tests replay: pages, gallery, search, API. Needs Python alone.

Usage: build.py SOURCE SITE          (make site)

Files keep their places: docs/format.md becomes docs/format.html, so that links between pages stay as they are. Every link
and every anchor is checked.
"""

import ast
import html
import json
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from markdown import Page, slug  # noqa: E402
from notebooks import notebooks  # noqa: E402

source, site = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()

MENU = [("Start", ["README.md", "docs/tutorial.md", "docs/howto.md", "gallery.md"]),
        ("Reference", ["docs/format.md", "docs/commands.md", "docs/options.md", "docs/python.md", "docs/cpp.md", "docs/studio.md",
                       "docs/editors.md", "docs/symbols.md"]),
        ("In depth", ["docs/patterns.md", "docs/coming_from.md", "docs/others.md", "docs/cluster.md"]),
        ("Method", sorted(str(p.relative_to(source)) for p in source.glob("docs/method/*.md"))),
        ("API", ["api/python.md", "api/cpp.md"]),
        ("Project", ["docs/house.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "bench/README.md"])]
NAMES = {"README.md": "saltus", "gallery.md": "Gallery", "api/python.md": "Python", "api/cpp.md": "C++",
         "bench/README.md": "Benchmarks"}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2328; --paper: #fff; --soft: #f3f5f7; --line: #d9dfe4; --link: #0b62a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe5ea; --paper: #14181b; --soft: #1e2429; --line: #38424a; --link: #7cbcf0; } img { background: #fff; } }
* { box-sizing: border-box; } body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); display: flex; }
nav { width: 15rem; flex: none; padding: 1rem; height: 100vh; overflow: auto; position: sticky; top: 0; border-right: 1px solid var(--line); font-size: 14px; }
nav b { display: block; margin-top: .9rem; } nav a { display: block; color: inherit; padding: .1rem 0; text-decoration: none; } nav a:hover, nav a.here { color: var(--link); }
main { padding: 1rem 2rem 4rem; max-width: 60rem; min-width: 0; } a { color: var(--link); } img { max-width: 100%; height: auto; }
pre { background: var(--soft); padding: .8rem 1rem; overflow: auto; border-radius: 6px; font-size: 13.5px; line-height: 1.45; } code { font-family: ui-monospace, monospace; font-size: .92em; }
table { border-collapse: collapse; display: block; overflow: auto; } td, th { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
input { width: 100%; padding: .4rem; font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line); border-radius: 6px; }
#found a { border-bottom: 1px solid var(--line); padding: .3rem 0; } #found small { display: block; opacity: .7; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem; } .cards a { color: inherit; text-decoration: none; border: 1px solid var(--line); border-radius: 6px; padding: .6rem; }
.cards img { width: 100%; height: 9rem; object-fit: cover; object-position: top; } .cards strong { display: block; } a.word { color: inherit; text-decoration: underline dotted; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; width: auto; height: auto; } }
"""
SEARCH = """
const box = document.querySelector("#search"), list = document.querySelector("#found"), root = document.body.dataset.root;
let pages; const load = () => pages ??= fetch(root + "search.json").then(r => r.json());
box.onfocus = load;
box.oninput = async () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(w => w.length > 1), sections = await load();
  const score = s => words.reduce((sum, w) => { const t = s.title.toLowerCase().includes(w), b = s.text.includes(w);
    return sum === null || !(t || b) ? null : sum + (t ? 5 : 0) + (b ? 1 : 0); }, 0);
  const best = words.length ? sections.map(s => [score(s), s]).filter(p => p[0] !== null).sort((a, b) => b[0] - a[0]).slice(0, 12) : [];
  list.replaceChildren(...best.map(([, s]) => { const a = document.createElement("a"); a.href = root + s.at; a.textContent = s.title;
    const small = document.createElement("small"); small.textContent = s.page; a.append(small); return a; }));
};
"""

pages = {}      # place -> Page
broken = []     # complaints about links
copied = set()  # files that links lead to


def place_of(path):
    return re.sub(r"\.md$", ".html", path)


def linker(page):
    """How a link of a page is written in the site; files that are no pages are copied."""
    def link(target):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return target
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if not (full in generated or (source / full).exists()):
            broken.append(f"{page}: {target} leads nowhere")
        elif (source / full).is_dir():
            full = os.path.join(full, "README.md") if (source / full / "README.md").exists() else full
            if not full.endswith(".md"):
                folders.add(full)
                return os.path.join(path, "index.html")
            path = os.path.join(path, "README.md")
        elif not full.endswith(".md"):
            copied.add(full)
        return place_of(path) + (f"#{anchor}" if anchor else "")
    return link


def check_anchors():
    for page, made in pages.items():
        for target in re.findall(r'href="([^"]*)"', made.html):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target) or not anchor:
                continue
            full = os.path.normpath(os.path.join(os.path.dirname(place_of(page)), path)) if path else place_of(page)
            other = next((p for p in pages if place_of(p) == full), None)
            if other and anchor not in [s[1] for s in pages[other].sections] and f'id="{anchor}"' not in pages[other].html:
                broken.append(f"{page}: {target} has no such heading")


# ---- pages that are made ----------------------------------------------------------------------------------------------

def gallery_page():
    cards = []
    for folder in sorted((source / "models").iterdir()):
        if not (folder / "model.toml").exists():
            continue
        text = (folder / "model.toml").read_text()
        name = tomllib.loads(text).get("name", folder.name)
        picture = next((f"models/{folder.name}/{p}" for p in ("plot.svg", "plot.png") if (folder / p).exists()), None)
        image = f'<img src="{picture}" alt="{html.escape(name)}" loading="lazy">' if picture else ""
        if picture:
            copied.add(picture)
        cards.append(f'<a href="models/{folder.name}/README.html">{image}<strong>{html.escape(name)}</strong>'
                     f'{html.escape(text.splitlines()[0].lstrip("# "))}</a>')
    return cards


def model_page(folder):
    """The README of a model, and behind it its file."""
    return ((folder / "README.md").read_text() + "\n## The file\n\n```toml\n" + (folder / "model.toml").read_text().rstrip() + "\n```\n\n"
            f"`saltus examples {folder.name} > {folder.name}.toml` writes it; `saltus run {folder.name}` runs it.\n")


def python_page():
    """Classes and functions of the package with their sentences, read from the source."""
    out = ["# The Python package", "", "What `import saltus` gives; [the tutorial](../docs/python.md) shows it at work.", ""]
    package = source / "python/saltus"
    names = ast.literal_eval(next(ast.unparse(n.value) for n in ast.parse((package / "__init__.py").read_text()).body
                                  if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"))
    trees = [ast.parse(p.read_text()) for p in sorted(package.glob("*.py"))]
    found = {n.name: n for tree in trees for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    signature = lambda f: f"{f.name}({ast.unparse(f.args)})" + (f" -> {ast.unparse(f.returns)}" if f.returns else "")
    for name in names:
        node = found.get(name)
        if node is None:
            continue
        if isinstance(node, ast.FunctionDef):
            out += [f"## {name}", "", "```python", signature(node), "```", "", ast.get_docstring(node) or "", ""]
            continue
        out += [f"## {name}", "", ast.get_docstring(node) or "", ""]
        for part in node.body:
            if isinstance(part, ast.AnnAssign):
                out.append(f"- `{ast.unparse(part.target)}: {ast.unparse(part.annotation)}`")
            if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                is_value = any("property" in ast.unparse(d) for d in part.decorator_list)
                doc = " ".join((ast.get_docstring(part) or "").split())
                out += [f"- `{part.name}`: {doc}" if is_value else f"- `{signature(part)}`: {doc}"]
        out.append("")
    return "\n".join(out)


def cpp_page():
    """The headers that saltus.hpp leads to: their opening sentences, types and functions."""
    out = ["# The C++ library", "", "Headers that `#include <saltus.hpp>` leads to; [how to begin](../docs/cpp.md).", ""]
    waiting, seen = ["include/saltus/saltus.hpp"], []
    while waiting:
        header = waiting.pop(0)
        for name in re.findall(r'^#include "(.*)"', (source / header).read_text(), re.M):
            if f"src/{name}" not in seen:
                seen.append(f"src/{name}")
                waiting.append(f"src/{name}")
    for header in sorted(seen):
        text = (source / header).read_text()
        opening = re.match(r"(?:// ?.*\n)+", text)
        body = re.search(r"^namespace saltus[^{]*\{\n(.*)^\}  // namespace", text, re.M | re.S)
        if body:
            words = re.sub(r"^// ?", "", opening[0], flags=re.M) if opening else ""
            out += [f"## {header.removeprefix('src/')}", "", words, "", "```cpp", body[1].strip(), "```", ""]
    return "\n".join(out)


# ---- putting it together ----------------------------------------------------------------------------------------------

def glossary():
    """Words of docs/symbols.md that pages link to: word -> anchor of its table."""
    words, section = {}, ""
    for line in (source / "docs/symbols.md").read_text().splitlines():
        if line.startswith("## "):
            section = slug(line[3:])
        cells = [c.strip() for c in line.split("|")]
        if line.startswith("|") and len(cells) > 3 and len(cells[2]) > 5 and " " not in cells[2].strip("*`"):
            words.setdefault(cells[2].strip("*`"), section)
    return words


def with_words(page, made, words):
    """The first use of a word of the dictionary on a page of the method or of commands links to it."""
    if not page.startswith(("docs/method/", "docs/commands", "docs/tutorial", "docs/howto")):
        return made
    back = os.path.relpath("docs/symbols.html", os.path.dirname(page))
    for word, section in words.items():
        made = re.sub(rf"(<p>[^<]*?)\b({re.escape(word)}s?)\b(?![^<]*</a>)",
                      rf'\1<a class="word" href="{back}#{section}">\2</a>', made, count=1)
    return made


def title_of(page):
    return NAMES.get(page) or (pages[page].sections[0][2] if pages[page].sections else page)


def menu(page, root):
    out = []
    for name, items in MENU:
        out.append(f"<b>{name}</b>")
        for item in items:
            if item in pages:
                here = ' class="here"' if item == page else ""
                out.append(f'<a href="{os.path.join(root, place_of(item))}"{here}>{html.escape(title_of(item))}</a>')
    return "\n".join(out)


def write(place, title, body, page):
    root = os.path.relpath(".", os.path.dirname(place) or ".") + "/"
    full = site / place
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                    f'<title>{html.escape(title)}</title><link rel="stylesheet" href="{root}style.css"><body data-root="{root}">'
                    f'<nav><input id="search" type="search" placeholder="Search" aria-label="Search"><div id="found"></div>'
                    f'{menu(page, root)}</nav><main>{body}</main><script src="{root}search.js"></script></body></html>\n')


def command_pages():
    """One page per command, cut from docs/commands.md, with what `saltus help` prints of its options in docs/options.md."""
    text, out = (source / "docs/commands.md").read_text(), {}
    for part in re.split(r"(?m)^(?=## )", text)[1:]:
        if name := re.match(r"## saltus (\w+)", part):
            out[f"docs/commands/{name[1]}.md"] = part.replace("\n### ", "\n## ").replace("## saltus", "# saltus", 1)
    return out


folders = set()
written = {p: (source / p).read_text() for _, items in MENU for p in items if (source / p).exists()}
written |= {str(f.relative_to(source) / "README.md"): model_page(f) for f in sorted((source / "models").iterdir())
            if (f / "README.md").exists() and (f / "model.toml").exists()}
written |= {"api/python.md": python_page(), "api/cpp.md": cpp_page(), "gallery.md": "# Gallery\n\nModels that come inside the program: "
            "`saltus examples NAME` prints one, `saltus run NAME` runs it.\n"}
generated = set(written)
for page, text in written.items():
    pages[page] = Page(text, linker(page))
made_notebooks = notebooks((source / "docs/python.md").read_text())
pages["docs/python.md"].out.append('<h2 id="notebooks">As notebooks</h2><ul>' + "".join(
    f'<li><a href="notebooks/{name}">{name}</a></li>' for name in made_notebooks) + "</ul>")
pages["gallery.md"].out.append('<div class="cards">' + "\n".join(gallery_page()) + "</div>")
check_anchors()
for name, text in command_pages().items():  # links are those of docs/commands.md, one folder up
    above = linker("docs/commands.md")
    pages[name] = Page(text, lambda t, above=above: t if re.match(r"[a-z]+:", t) else
                       ("../commands.html" + t if t.startswith("#") else "../" + above(t)))
MENU.insert(2, ("Commands", sorted(command_pages())))

if site.exists() and not (site / "search.json").exists() and any(site.iterdir()):
    raise SystemExit(f"{site} is no site: it is not replaced")
shutil.rmtree(site, ignore_errors=True)
site.mkdir(parents=True)
words, index = glossary(), []
for page, made in pages.items():
    write(place_of(page), title_of(page), with_words(page, made.html, words), page)
    index += [{"at": f"{place_of(page)}#{anchor}", "title": title, "page": title_of(page), "text": " ".join(" ".join(text).lower().split())[:1500]}
              for _, anchor, title, text in made.sections]
shutil.copy(site / "README.html", site / "index.html")
for folder in folders:
    inside = [p.name for p in sorted((source / folder).iterdir()) if p.is_file()]
    copied |= {f"{folder}/{name}" for name in inside}
    inside += [f"{p.name}/README.html" for p in sorted((source / folder).iterdir()) if f"{folder}/{p.name}/README.md" in pages]
    write(f"{folder}/index.html", folder, f"<h1>{folder}</h1><ul>" +
          "".join(f'<li><a href="{name}">{name.removesuffix("/README.html")}</a></li>' for name in inside) + "</ul>", "")
for path in copied:
    (site / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / path, site / path)
(site / "docs/notebooks").mkdir()
for name, text in made_notebooks.items():
    (site / "docs/notebooks" / name).write_text(text)
(site / "style.css").write_text(STYLE)
(site / "search.js").write_text(SEARCH)
(site / "search.json").write_text(json.dumps(index))
if broken:
    raise SystemExit("links that lead nowhere:\n" + "\n".join(sorted(set(broken))))
print(f"{site}/index.html: {len(pages)} pages, {len(index)} sections to search")
