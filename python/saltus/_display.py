"""What a notebook shows."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._model import Model
    from ._trajectory import Events, Trajectory

MOST_EVENTS = 20


def model_latex(model: "Model") -> str:
    """The equations as MathJax and KaTeX read them: the align part alone."""
    found = re.search(r"\\begin\{align\}(.*?)\\end\{align\}", model.latex(), re.S)
    body = found.group(1).strip() if found else ""
    return "$$\\begin{aligned}\n" + body + "\n\\end{aligned}$$"


def model_bundle(model: "Model") -> dict[str, str]:
    rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{value:.6g}</td></tr>"
                   for name, value in [*model.parameters.items(), *model.initial.items()])
    page = f"<b>{html.escape(model.name)}</b>\n{model_latex(model)}\n<table>{rows}</table>"
    return {"text/plain": model.describe(), "text/latex": model_latex(model), "text/html": page}


def events_html(events: "Events") -> str:
    n = events.array.dtype["state"].shape[0]
    head = "".join(f"<th>{h}</th>" for h in ["t", "kind", "on", "before", "after", *(f"state {i}" for i in range(n))])
    rows = []
    for e in events[:MOST_EVENTS]:
        cells = [f"{e.t:.10g}", e.kind, ", ".join(e.on), e.before, e.after, *(f"{v:.6g}" for v in e.state)]
        rows.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
    more = f"<p>and {len(events) - MOST_EVENTS} more</p>" if len(events) > MOST_EVENTS else ""
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>{more}"


def trajectory_svg(path: "Trajectory") -> str:
    """The picture of `saltus run`, without gnuplot or matplotlib."""
    return _core.run_svg(path.model._system, *path._kept())
