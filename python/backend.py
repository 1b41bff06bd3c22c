"""Builds the wheel without a network: cmake, then a zip (PEP 517, PEP 427). Nothing but the standard library."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
BUILD = SOURCE / "build" / "pip"


def version():
    return re.search(r"project\(saltus VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def metadata():
    return (f"Metadata-Version: 2.1\nName: saltus\nVersion: {version()}\n"
            "Summary: Nonsmooth dynamical systems from equations written as on paper\n"
            "Requires-Python: >=3.11\nRequires-Dist: numpy\n")


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def build_package():
    """The folder of the built package; a build folder that is there already is used again."""
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSALTUS_PYTHON=ON",
                    "-DSALTUS_TESTS=OFF", "-DSALTUS_MPI=OFF", f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", BUILD, "--target", "saltus_python", "-j", jobs], check=True)
    return BUILD / "python" / "saltus"


def write_wheel(folder, files):
    """files: name in the wheel -> bytes"""
    info = f"saltus-{version()}.dist-info"
    files = {**files, f"{info}/METADATA": metadata().encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: saltus\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()}
    record = ""
    name = f"saltus-{version()}-{tag()}.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = build_package()
    return write_wheel(wheel_directory, {f"saltus/{f.name}": f.read_bytes() for f in sorted(package.iterdir())
                                         if f.is_file()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"saltus.pth": f"{build_package().parent}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    name = f"saltus-{version()}"
    parts = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "pyproject.toml", "cmake", "include", "models",
             "python", "src")
    with tempfile.TemporaryDirectory() as scratch:
        info = Path(scratch) / "PKG-INFO"
        info.write_text(metadata())
        with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
            for part in parts:
                archive.add(SOURCE / part, f"{name}/{part}", filter=lambda f: None if "__pycache__" in f.name else f)
            archive.add(info, f"{name}/PKG-INFO")
    return f"{name}.tar.gz"
