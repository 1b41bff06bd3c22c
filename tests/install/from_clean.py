#!/usr/bin/env python3
"""From the source archive alone, as another user, in a path with spaces and without a network: `pip install` into a fresh
environment, and what a person does then. Some minutes of compiling: in the group `slow`.

Usage: from_clean.py SOURCE [CMAKE_ARGS]
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

source = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(source / "python"))
import backend  # noqa: E402

SYSTEM = {"linux-vdso", "libstdc++", "libm", "libgcc_s", "libc", "libpthread", "libdl", "librt", "ld-linux-x86-64",
          "ld-linux-aarch64", "/lib64/ld-linux-x86-64", "/lib/ld-linux-aarch64"}

with tempfile.TemporaryDirectory(prefix="saltus from clean ") as folder:
    folder = Path(folder)
    with tarfile.open(folder / backend.build_sdist(folder)) as archive:
        archive.extractall(folder)
    home = folder / f"saltus-{backend.VERSION}"
    (folder / "home").mkdir()
    other = {}
    if os.getuid() == 0:  # as somebody who may write nothing else
        for path in [folder, *folder.rglob("*")]:
            shutil.chown(path, "nobody", "nogroup")
        other = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8", "CCACHE_DISABLE": "1",
                   "CMAKE_ARGS": " ".join(sys.argv[2:])}

    def run(*command, at=folder):
        done = subprocess.run([str(c) for c in command], cwd=at, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **other)
        if done.returncode != 0:
            raise SystemExit(f"{command} failed:\n{done.stdout[-5000:]}")
        return done.stdout

    run("/usr/bin/python3", "-m", "venv", "--system-site-packages", "env")
    pip = ("env/bin/pip", "--no-cache-dir", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-index", "--no-deps", "--wheel-dir", "wheels", home)
    run(*pip, "install", "--no-index", next((folder / "wheels").glob("saltus-*.whl")))

    assert run("env/bin/saltus", "--version") == f"saltus {backend.VERSION}\n"
    assert "events     17" in run("env/bin/saltus", "run", "dry_friction")
    assert (folder / "dry_friction-run-001/plot.svg").exists()
    told = run("env/bin/python", "-c", "import saltus; p = saltus.Model.example('dry_friction').run(until=60); "
               "print(saltus.__file__, len(p.events), p.y[-1])")
    assert str(folder / "env") in told and told.split()[-2] == "17", told
    for binary in (folder / "env/bin/saltus", next((folder / "env").rglob("_core*.so"))):
        needed = {re.sub(r"\.so.*", "", line.split()[0]) for line in run("ldd", binary).splitlines()}
        assert needed <= SYSTEM, needed - SYSTEM
    # The same build as an archive, unpacked somewhere else.
    run("cpack", "-G", "TGZ", "-B", folder / "archive", at=home / "build/pip")
    with tarfile.open(next((folder / "archive").glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "another place")
    assert "bouncing_ball" in run(next((folder / "another place").glob("*/bin/saltus")), "examples")

    run(*pip, "uninstall", "--yes", "saltus")
    left = [f for f in (folder / "env").rglob("*saltus*")]
    assert not left, left
print("installed from the source archive, used and removed")
