#!/usr/bin/env python3
"""A foreign project finds the installed library, builds the example of the docs with it, and gets what the program prints.

Usage: check.py BUILD_DIR SOURCE_DIR SALTUS
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

build, source, saltus = (Path(a).resolve() for a in sys.argv[1:])


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    prefix, project, work = (Path(folder) / name for name in ("prefix", "project", "work"))
    run("cmake", "--install", build, "--prefix", prefix)
    assert run(prefix / "bin/saltus", "--version").startswith("saltus "), "the program is not installed"

    # Only the standard library: what stands in <> has no folder and no .h.
    headers = list((prefix / "include").rglob("*.hpp"))
    assert len(headers) > 10, headers
    for header in headers:
        foreign = [h for h in re.findall(r"#include <(.*)>", header.read_text()) if not re.fullmatch(r"[a-z_]+", h)]
        assert not foreign, (header, foreign)

    # Nothing of ours is missing in the library.
    library = next(prefix.rglob("libsaltus.so"))
    missing = run("nm", "-D", "-C", "--undefined-only", library)
    assert "saltus::" not in missing, [line for line in missing.splitlines() if "saltus::" in line]
    shown = run("nm", "-D", "-C", "--defined-only", library).splitlines()
    foreign = [line for line in shown if "saltus" not in line]
    assert len(shown) > 100 and not foreign, foreign[:10]  # nothing of the libraries it was compiled with

    project.mkdir()
    for name in ("CMakeLists.txt", "friction.cpp", "branch.cpp"):
        (project / name).write_text((source / "docs/cpp" / name).read_text())
    run("cmake", "-S", project, "-B", work, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", work)
    printed = run(work / "friction").splitlines()

    document = json.loads(run(saltus, "run", "dry_friction", "--until", "60", "--json", cwd=folder))
    events = [e for e in document["events"] if e["kind"] != "section"]
    assert len(printed) == len(events) + 1, printed
    for line, event in zip(printed, events):
        t, kind, mode = line.split(" ", 2)
        assert (float(t), kind, mode) == (event["t"], event["kind"], event["mode"][1]), (line, event)

    special = json.loads(run(saltus, "follow", "impact_oscillator", "w=2:4", "--section", "strobe", "--json", cwd=folder))["special"]
    assert special, "nothing special to compare"
    lines = run(work / "branch").splitlines()
    assert [line.split() for line in lines] == [[s["label"], s["type"], f"{s['value']:.17g}"] for s in special], lines

    compiled = run("sh", "-c", f"c++ $(pkg-config --cflags saltus) friction.cpp $(pkg-config --libs saltus) -Wl,-rpath,{prefix}/lib "
                   f"-Wl,-rpath,{library.parent} -o by_hand && ./by_hand", cwd=project,
                   env={**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("saltus.pc")).parent)})
    assert compiled.splitlines() == printed, compiled

    # Versions of another minor number are refused.
    listing = (project / "CMakeLists.txt").read_text().replace("saltus 0.2", "saltus 0.1")
    (project / "CMakeLists.txt").write_text(listing)
    refused = subprocess.run(["cmake", "-S", project, "-B", Path(folder) / "other", f"-DCMAKE_PREFIX_PATH={prefix}"],
                             capture_output=True, text=True)
    assert refused.returncode != 0 and "0.1" in refused.stderr, refused.stderr
