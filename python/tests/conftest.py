import os
from pathlib import Path

import pytest

import saltus

SOURCE = Path(__file__).resolve().parents[2]


@pytest.fixture
def friction():
    return saltus.Model.example("dry_friction")


@pytest.fixture
def program():
    """The command line, to be compared with."""
    path = os.environ.get("SALTUS_PROGRAM")
    if not path:
        pytest.skip("SALTUS_PROGRAM does not say where the program is")
    return path
