"""Builds wheels and source archives without a network (PEP 517, 621, 427), with the standard library, cmake and a
compiler. SALTUS_BACKEND=scikit-build-core hands the work to that backend instead: what releases are made with."""

import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
NAME, VERSION = PROJECT["name"], PROJECT["version"]
INFO = f"{NAME}-{VERSION}.dist-info"

# What a build needs: what to look for, its package in Debian, and in conda-forge.
PROGRAMS = {("c++", "g++", "clang++"): ("g++", "cxx-compiler"), ("cmake",): ("cmake", "cmake"),
            ("ninja", "make", "gmake"): ("ninja-build", "ninja")}
HEADERS = {"fmt/format.h": ("libfmt-dev", "fmt"), "CLI/CLI.hpp": ("libcli11-dev", "cli11"),
           "toml++/toml.h": ("libtomlplusplus-dev", "tomlplusplus"),
           "nlohmann/json.hpp": ("nlohmann-json3-dev", "nlohmann_json"),
           "hdf5.h": ("libhdf5-dev", "hdf5"), "pybind11/pybind11.h": ("pybind11-dev", "pybind11"), "Python.h": ("python3-dev", "python")}


def include_folders():
    """Where headers are looked for beside the compiler's own folders: those of Python and of its environment."""
    folders = [sysconfig.get_path("include"), sysconfig.get_path("platinclude"), str(Path(sys.prefix) / "include")]
    folders.append("/usr/include/hdf5/serial")  # Debian's place
    folders += [str(Path(p) / "include") for p in re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", "")) if p]
    try:
        import pybind11
        folders.append(pybind11.get_include())
    except ImportError:
        pass
    return list(dict.fromkeys(folders))


def find_compiler():
    named = os.environ.get("CXX", "").split()
    return named[0] if named else next((p for p in ("c++", "g++", "clang++") if shutil.which(p)), None)


def missing():
    """Packages that are missing, as pairs (Debian, conda-forge): found out by asking, in a fraction of a second."""
    lacking = [packages for names, packages in PROGRAMS.items() if not any(map(shutil.which, names))]
    compiler = find_compiler()
    if compiler is None or shutil.which(compiler) is None:
        return lacking
    question = "".join(f"#if !__has_include(<{header}>)\nlacking {header}\n#endif\n" for header in HEADERS)
    folders = [part for folder in include_folders() for part in ("-I", folder)]
    answer = subprocess.run([compiler, "-std=c++20", "-x", "c++", "-E", "-P", *folders, "-"], input=question,
                            capture_output=True, text=True)
    return lacking + [HEADERS[line.split()[1]] for line in answer.stdout.splitlines() if line.startswith("lacking ")]


def require_tools():
    lacking = missing()
    if not lacking:
        return
    debian, conda = (" ".join(dict.fromkeys(packages)) for packages in zip(*lacking))
    raise SystemExit(f"saltus cannot be compiled yet: something is missing.\n  Debian, Ubuntu:  apt install {debian}\n"
                     f"  conda:           conda install -c conda-forge {conda}")


def tell(line):
    """Says something to the person in front of the terminal: pip shows what a backend prints only with -v."""
    print(line, flush=True)
    try:
        with open("/dev/tty", "w") as terminal:
            terminal.write(f"\nsaltus: {line}\n")
    except OSError:
        pass


def build_folder():
    """build/pip, which the next build uses again; a temporary folder where the source cannot be written."""
    folder = SOURCE / "build" / "pip"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="saltus-build-"))


def compile_program():
    """The build folder with the module and the program, both without Debian's shared libraries."""
    require_tools()
    build = build_folder()
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(len(os.sched_getaffinity(0)))
    tell(f"compiling with {jobs} jobs in {build}: some minutes (pip -v shows the steps)")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    prefixes = os.pathsep.join([sys.prefix, os.environ.get("CMAKE_PREFIX_PATH", "")]).strip(os.pathsep)
    subprocess.run(["cmake", "-S", SOURCE, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DSALTUS_PYTHON=ON",
                    "-DSALTUS_PORTABLE=ON", "-DSALTUS_TESTS=OFF", f"-DPython3_EXECUTABLE={sys.executable}",
                    f"-DCMAKE_INCLUDE_PATH={';'.join(include_folders())}", *shlex.split(os.environ.get("CMAKE_ARGS", ""))],
                   check=True, env={**os.environ, "CMAKE_PREFIX_PATH": prefixes})
    subprocess.run(["cmake", "--build", build, "--target", "saltus_python", "saltus_cli", "-j", jobs], check=True)
    return build


def metadata():
    """Core metadata 2.1 of pyproject.toml, with the README as the description."""
    lines = ["Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {VERSION}", f"Summary: {PROJECT['description']}",
             f"License: {PROJECT['license']['text']}", "License-File: LICENSE",
             f"Keywords: {','.join(PROJECT['keywords'])}", f"Requires-Python: {PROJECT['requires-python']}"]
    lines += [f"Classifier: {c}" for c in PROJECT["classifiers"]]
    lines += [f"Project-URL: {name}, {url}" for name, url in PROJECT.get("urls", {}).items()]
    lines += [f"Requires-Dist: {need}" for need in PROJECT["dependencies"]]
    for extra, needs in PROJECT["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {need}; extra == '{extra}'" for need in needs)]
    lines += ["Description-Content-Type: text/markdown", "", (SOURCE / PROJECT["readme"]).read_text()]
    return "\n".join(lines)


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def write_wheel(folder, files):
    """files: name in the wheel -> bytes, or a path of a file that keeps its permissions."""
    files = {**files, f"{INFO}/METADATA": metadata().encode(), f"{INFO}/LICENSE": (SOURCE / "LICENSE").read_bytes(),
             f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nGenerator: saltus\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()}
    record = ""
    name = f"{NAME}-{VERSION}-{tag()}.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            mode = 0o755 if "/scripts/" in path else 0o644
            content = content if isinstance(content, bytes) else content.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same bytes from the same build
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
        wheel.writestr(zipfile.ZipInfo(f"{INFO}/RECORD", (1980, 1, 1, 0, 0, 0)), record + f"{INFO}/RECORD,,\n")
    return name


def packed(stage):
    """The files below an installed prefix, at their places in a wheel (PEP 427): name -> path."""
    site = next(stage.rglob("saltus/__init__.py")).parents[1]
    files = {str(f.relative_to(site)): f for f in sorted(site.rglob("*")) if f.is_file()}
    for folder, place in (("bin", "scripts"), ("share", "data/share")):
        files |= {f"{NAME}-{VERSION}.data/{place}/{f.relative_to(stage / folder)}": f
                  for f in sorted((stage / folder).rglob("*")) if f.is_file()}
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = compile_program()
    with tempfile.TemporaryDirectory() as scratch:
        for component in ("python", "program"):
            subprocess.run(["cmake", "--install", build, "--prefix", scratch, "--component", component, "--strip"],
                           check=True)
        return write_wheel(wheel_directory, packed(Path(scratch)))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build = compile_program()
    program = f'#!/bin/sh\nexec "{build}/saltus" "$@"\n'
    return write_wheel(wheel_directory, {"saltus.pth": f"{build / 'python'}\n".encode(),
                                         f"{NAME}-{VERSION}.data/scripts/saltus": program.encode()})


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    require_tools()
    folder = Path(metadata_directory) / INFO
    folder.mkdir()
    (folder / "METADATA").write_text(metadata())
    (folder / "LICENSE").write_bytes((SOURCE / "LICENSE").read_bytes())
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: saltus\nRoot-Is-Purelib: false\nTag: {tag()}\n")
    return INFO


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def is_source(path):
    """What a source archive holds: all but hidden files, builds, and results of runs."""
    parts = path.relative_to(SOURCE).parts
    ours = not any(p.startswith(".") and p != ".clang-format" or p in ("__pycache__", "node_modules") for p in parts)
    return ours and parts[0] != "build" and not re.search(r"-run-\d+$", parts[0]) and not path.name.endswith(".pyc")


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{VERSION}"
    with tempfile.TemporaryDirectory() as scratch:
        info = Path(scratch) / "PKG-INFO"
        info.write_text(metadata())
        with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as archive:
            archive.add(info, f"{base}/PKG-INFO")
            for top in sorted(SOURCE.iterdir()):
                for path in [top] if top.is_file() else sorted(top.rglob("*")) if is_source(top) else []:
                    if is_source(path) and path.is_file() and path.name != "PKG-INFO":
                        archive.add(path, f"{base}/{path.relative_to(SOURCE)}", recursive=False)
    return f"{base}.tar.gz"


if os.environ.get("SALTUS_BACKEND") == "scikit-build-core":
    from scikit_build_core.build import *  # noqa: F401,F403
