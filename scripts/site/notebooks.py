"""Jupyter notebooks of a tutorial in Markdown whose ```pycon blocks the tests replay: one for each part (## heading). A
part begins with what the parts before it have made, so that each can be opened alone."""

import json
import re


def code_of(session):
    """What is typed in a session of Python, without what it prints."""
    lines = [line[4:] for line in session.splitlines() if line.startswith((">>> ", "... ", ">>>", "..."))]
    return "\n".join(lines).rstrip()


def cell(kind, text, number):
    made = {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def notebooks(text):
    """File name -> notebook (as JSON), for each part that computes something."""
    _, *parts = re.split(r"(?m)^(?=## )", text)
    found, before = {}, []
    for part in parts:
        pieces = re.split(r"(?ms)^```pycon\n(.*?)^```\n", part)
        sessions = [code_of(s) for s in pieces[1::2]]
        if not sessions:
            continue
        cells = [("code", "# What the parts before this one have made.\n" + "\n".join(before))] if before else []
        for i, piece in enumerate(pieces):
            if piece.strip():
                cells.append(("code", code_of(piece)) if i % 2 else ("markdown", piece.strip()))
        title = re.match(r"## (.*)", part)[1]
        name = f"{len(found) + 1}-" + re.sub(r"\W+", "-", title.lower()).strip("-") + ".ipynb"
        found[name] = json.dumps({"cells": [cell(kind, body, i) for i, (kind, body) in enumerate(cells)],
                                  "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
                                  "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
        before += sessions
    return found
