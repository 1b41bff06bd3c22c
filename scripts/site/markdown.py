"""Markdown as the pages of saltus use it, to HTML: headings, lists, tables, code, quotes, images, links."""

import html
import re


def slug(title):
    """The anchor of a heading, as GitHub makes it."""
    words = re.sub(r"`|\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def inline(text, link):
    """`link(target)` gives the address that a target has in the site."""
    kept = []

    def keep(made):
        kept.append(made)
        return f"\0{len(kept) - 1}\0"

    text = re.sub(r"(`+)(.+?)\1", lambda m: keep(f"<code>{html.escape(m[2].strip())}</code>"), text, flags=re.S)
    text = html.escape(text, quote=False)
    text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", lambda m: keep(f'<img src="{link(m[2])}" alt="{html.escape(m[1])}" loading="lazy">'), text)
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", lambda m: keep(f'<a href="{link(m[2])}">') + m[1] + "</a>", text)
    text = re.sub(r"(?<![\w*])\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<strong>\1</strong>", text, flags=re.S)
    text = re.sub(r"(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])", r"<em>\1</em>", text, flags=re.S)
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], text)
    return text


def cells(row):
    """The cells of a table's row; a bar within code or behind a backslash does not divide."""
    parts = re.findall(r"(?:`[^`]*`|\\\||[^|`])+|(?<=\|)(?=\|)", row.strip().removeprefix("|").removesuffix("|"))
    return [p.replace("\\|", "|").strip() for p in parts]


class Page:
    """Blocks of a page, top to bottom; `sections` are (level, anchor, title, text) for the contents and the search."""

    def __init__(self, text, link):
        self.link, self.sections, self.out = link, [], []
        self.blocks(text.splitlines())

    @property
    def html(self):
        return "\n".join(self.out)

    def text(self, words):
        if self.sections:
            self.sections[-1][3].append(re.sub(r"[`*|]|\]\([^)]*\)|!?\[", " ", words))

    def heading(self, level, title):
        anchor, taken = slug(title), [s[1] for s in self.sections]
        while anchor in taken:
            anchor += "-1"
        plain = re.sub(r"`|\[([^\]]*)\]\([^)]*\)", r"\1", title)
        self.sections.append((level, anchor, plain, []))
        self.out.append(f'<h{level} id="{anchor}">{inline(title, self.link)}</h{level}>')

    def code(self, lines, kind):
        body = html.escape("\n".join(lines))
        if kind == "console":
            body = re.sub(r"^\$ (.*)$", r'<b>$ \1</b>', body, flags=re.M)
        self.out.append(f'<pre class="{html.escape(kind) or "plain"}"><code>{body}</code></pre>')
        self.text(" ".join(lines))

    def table(self, rows):
        head, *body = [cells(r) for r in rows if not re.fullmatch(r"[|\s:-]+", r)]
        row = lambda items, tag: "<tr>" + "".join(f"<{tag}>{inline(c, self.link)}</{tag}>" for c in items) + "</tr>"
        self.out.append("<table>" + (row(head, "th") if any(head) else "") + "".join(row(r, "td") for r in body) + "</table>")
        self.text(" ".join(rows))

    def items(self, lines):
        """A list, with the lists and blocks that are indented below its items."""
        ordered = bool(re.match(r"\d+\. ", lines[0]))
        self.out.append("<ol>" if ordered else "<ul>")
        item = []
        for line in [*lines, "- "]:
            begins = re.match(r"([-*]|\d+\.) +", line)
            if (begins or line == "- ") and item:
                self.out.append("<li>")
                before = len(self.out)
                self.blocks(item, tight=True)
                if len(self.out) > before and self.out[before].startswith("<p>"):
                    self.out[before] = self.out[before][3:-4]
                self.out.append("</li>")
                item = []
            item.append(line[begins.end():] if begins else re.sub(r"^ {1,4}", "", line))
        self.out.append("</ol>" if ordered else "</ul>")

    def blocks(self, lines, tight=False):
        at = 0
        while at < len(lines):
            line = lines[at]
            begin = at
            take = lambda keep: next((i for i in range(begin, len(lines)) if not keep(lines[i])), len(lines))
            if not line.strip():
                at += 1
            elif fence := re.match(r"```\s*(\S*)", line):
                at = next((i for i in range(begin + 1, len(lines)) if lines[i].startswith("```")), len(lines))
                self.code(lines[begin + 1:at], fence[1])
                at += 1
            elif title := re.match(r"(#{1,6}) +(.*?)\s*#*$", line):
                self.heading(len(title[1]), title[2])
                at += 1
            elif line.startswith("    ") and not tight:
                at = take(lambda l: l.startswith("    ") or not l.strip())
                self.code([l[4:] for l in "\n".join(lines[begin:at]).rstrip().split("\n")], "")
            elif re.match(r"\|", line):
                at = take(lambda l: l.startswith("|"))
                self.table(lines[begin:at])
            elif line.startswith(">"):
                at = take(lambda l: l.startswith(">"))
                self.out.append("<blockquote>")
                self.blocks([l[1:].removeprefix(" ") for l in lines[begin:at]])
                self.out.append("</blockquote>")
            elif re.fullmatch(r"\s*([-*_])(\s*\1){2,}\s*", line):
                self.out.append("<hr>")
                at += 1
            elif re.match(r"([-*]|\d+\.) ", line):
                at = take(lambda l: re.match(r"([-*]|\d+\.) | +\S", l) or not l.strip())
                while not lines[at - 1].strip():
                    at -= 1
                self.items(lines[begin:at])
            else:
                at = take(lambda l: l.strip() and not re.match(r"```|#{1,6} |\||>|([-*]|\d+\.) ", l) or l is line)
                words = "\n".join(lines[begin:at])
                self.out.append(f"<p>{inline(words, self.link)}</p>")
                self.text(words)
