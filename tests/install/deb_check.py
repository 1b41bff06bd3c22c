#!/usr/bin/env python3
"""The .deb packages of a build: made by cpack, installed into an empty root, used from there, removed.

Usage: deb_check.py BUILD          (of `make deb`, or any build whose parts are there)
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

build = Path(sys.argv[1]).resolve()


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed:\n{done.stdout[-4000:]}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    run("cpack", "-G", "DEB", "-B", folder / "packages", cwd=build)
    packages = {p.name.split("_")[0]: p for p in (folder / "packages").glob("*.deb")}
    for name in ("saltus", "libsaltus-dev", "python3-saltus"):
        assert name in packages, sorted(packages)
    assert any(re.fullmatch(r"libsaltus[0-9.]+", name) for name in packages), sorted(packages)

    fields = run("dpkg-deb", "-f", packages["saltus"])
    assert "Depends: libc6" in fields and "Section: math" in fields, fields
    assert "openmpi" not in fields and "llvm" not in fields, fields  # modules of their own
    listed = run("dpkg-deb", "-c", packages["saltus"])
    for path in ("usr/bin/saltus", "usr/share/man/man1/saltus-run.1.gz", "usr/share/doc/saltus/copyright",
                 "usr/share/doc/saltus/changelog.gz", "usr/share/bash-completion/completions/saltus"):
        assert f"./{path}" in listed, (path, listed)
    assert "usr/share/doc/saltus/LICENSE" not in listed, "the copyright file names the licence"
    if shutil.which("lintian"):
        for package in packages.values():
            told = subprocess.run(["lintian", "--fail-on", "error", package], capture_output=True, text=True)
            assert told.returncode == 0, told.stdout

    # An empty root with a list of packages of its own: nothing of the machine is touched.
    root = folder / "root"
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/updates").mkdir()
    (root / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=/dev/null"]
    run("fakeroot", *dpkg, "-i", *packages.values())
    around = {**os.environ, "LD_LIBRARY_PATH": f"{next(root.rglob('libsaltus.so.*')).parent}"}
    assert "events     17" in run(root / "usr/bin/saltus", "run", "dry_friction", "--no-plot", "-o", folder / "out", env=around)
    dist = next(root.rglob("saltus/__init__.py")).parents[1]
    told = run("/usr/bin/python3", "-c", "import saltus; print(saltus.__file__, saltus.Model.example('harmonic').run(until=1).end.why)",
               env={**around, "PYTHONPATH": str(dist)}, cwd=folder)
    assert told.startswith(str(root)) and told.split()[-1] == "time", told
    run("fakeroot", *dpkg, "-r", *packages)
    left = [p for p in root.rglob("*") if p.is_file() and "var/lib/dpkg" not in str(p)]
    assert not left, left
print("packages made, installed, used and removed:", ", ".join(sorted(packages)))
