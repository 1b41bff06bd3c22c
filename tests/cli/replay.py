#!/usr/bin/env python3
"""Replay terminal sessions and compare what is printed.

Usage: replay.py SALTUS SOURCE_DIR FILE

FILE is a transcript, or a Markdown page whose ```console blocks are transcripts. A line `$ command` is run by sh in a
scratch folder, with the built saltus first on PATH and the source's models/ at hand; the lines below it, up to the
next command, must be what it prints (stdout, then stderr). `...` alone on a line stands for any lines, inside a line
for any text. `[exit 2]` as last line is the exit status, otherwise it must be 0. A block ```toml NAME of a page is the
file NAME in the scratch folder of all its sessions.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def sessions(path):
    text = path.read_text()
    if path.suffix == ".md":
        return re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    return [text]


def steps(session):
    """(command, expected lines, expected status) of each command."""
    found = []
    for line in session.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
        elif line.strip() and not line.startswith("#"):
            raise SystemExit(f"a session starts with '$ command', not with: {line}")
    for command, expected in found:
        while expected and not expected[-1].strip():
            expected.pop()
        status = 0
        if expected and (match := re.fullmatch(r"\[exit (\d+)\]", expected[-1])):
            status = int(match[1])
            expected.pop()
        yield command, expected, status


def pattern(expected):
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece.rstrip()) for piece in line.rstrip().split("...")) + r"[ ]*\n")
    return re.compile("".join(parts))


def files(path):
    return re.findall(r"^```toml (\S+)\n(.*?)^```", path.read_text(), re.M | re.S) if path.suffix == ".md" else []


def replay(session, saltus, source, written):
    mistakes = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "models").symlink_to(source / "models")
        for name, text in written:
            (Path(folder) / name).write_text(text)
        environment = dict(os.environ, PATH=f"{saltus.parent}:{os.environ['PATH']}")
        for command, expected, status in steps(session):
            run = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
            printed = re.sub(r"\n+\Z", "\n", run.stdout + run.stderr)
            if run.returncode != status:
                print(f"$ {command}\nexit status {run.returncode}, expected {status}; it printed:\n{printed}")
                mistakes += 1
            elif not pattern(expected).fullmatch(printed):
                print(f"$ {command}\nprinted:\n{printed}\nexpected:\n" + "\n".join(expected) + "\n")
                mistakes += 1
    return mistakes


def main():
    saltus, source, path = (Path(argument).resolve() for argument in sys.argv[1:4])
    found = sessions(path)
    if not found:
        raise SystemExit(f"{path} holds no session")
    sys.exit(1 if sum(replay(session, saltus, source, files(path)) for session in found) else 0)


main()
