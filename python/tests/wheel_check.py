#!/usr/bin/env python3
"""A wheel of the built package, installed by pip into a fresh environment without a network, works from another folder.

Usage: wheel_check.py BUILD SOURCE
"""

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

build, source = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(source / "python"))
import backend  # noqa: E402

backend.compile_program = lambda: build  # built already: what is tested is the packing

with tempfile.TemporaryDirectory() as folder:
    wheel = Path(folder) / backend.build_wheel(folder)
    with zipfile.ZipFile(wheel) as archive:
        info = next(n for n in archive.namelist() if n.endswith("RECORD"))
        for name, digest, size in csv.reader(io.StringIO(archive.read(info).decode())):
            if name == info:
                continue
            content = archive.read(name)
            kind, value = digest.split("=", 1)
            assert kind == "sha256" and len(content) == int(size), name
            assert base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() == value, name
        names = archive.namelist()
        assert "saltus/py.typed" in names and "saltus/_core.pyi" in names and any(n.endswith("/LICENSE") for n in names)
        told = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
        for line in ("Name: saltus", "License: Apache-2.0", "Requires-Dist: numpy", "Provides-Extra: plot", "# saltus"):
            assert f"\n{line}" in told, (line, told[:1000])
    environment = Path(folder) / "env"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", environment], check=True)
    subprocess.run([environment / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel],
                   check=True)
    code = "import saltus; print(saltus.__file__, saltus.Model.example('harmonic').run(until=1).end.why)"
    told = subprocess.run([environment / "bin/python", "-c", code], cwd=folder, check=True, capture_output=True,
                          text=True).stdout
    assert told.startswith(str(environment)) and told.split()[-1] == "time", told
    program = environment / "bin/saltus"
    assert subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout == f"saltus {backend.VERSION}\n"
    assert "dry_friction" in subprocess.run([program, "examples"], check=True, capture_output=True, text=True).stdout
    source_archive = Path(folder) / backend.build_sdist(folder)
    with tarfile.open(source_archive) as archive:
        names = {n.split("/", 1)[1] for n in archive.getnames()}
    tracked = subprocess.run(["git", "-C", source, "ls-files"], capture_output=True, text=True).stdout.split()
    lacking = [f for f in tracked if f not in names and not f.startswith(".")]
    assert not lacking, lacking  # everything can be built and tested from it
    assert "PKG-INFO" in names and not any(n.startswith("build/") for n in names)

    # What is missing is told at once, by the names of its packages.
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", "import backend; backend.build_wheel('.')"], cwd=source / "python",
                          env={"PATH": "/nonexistent"}, capture_output=True, text=True)
    assert done.returncode != 0 and "apt install g++ cmake ninja-build" in done.stderr, done.stderr
    assert time.monotonic() - began < 2
