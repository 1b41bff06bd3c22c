#!/usr/bin/env python3
"""A wheel of the built package, installed by pip into a fresh environment without a network, works from another folder.

Usage: wheel_check.py PACKAGE SOURCE
"""

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

package, source = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(source / "python"))
import backend  # noqa: E402

backend.build_package = lambda: package  # built already: what is tested is the packing

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
        assert "saltus/py.typed" in archive.namelist() and "saltus/_core.pyi" in archive.namelist()
    environment = Path(folder) / "env"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", environment], check=True)
    subprocess.run([environment / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel],
                   check=True)
    code = "import saltus; print(saltus.__file__, saltus.Model.example('harmonic').run(until=1).end.why)"
    told = subprocess.run([environment / "bin/python", "-c", code], cwd=folder, check=True, capture_output=True,
                          text=True).stdout
    assert told.startswith(str(environment)) and told.split()[-1] == "time", told
    source_archive = Path(folder) / backend.build_sdist(folder)
    assert source_archive.stat().st_size > 100_000
