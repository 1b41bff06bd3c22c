"""Results in files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Union

from . import _core
from ._errors import FileError, usage
from ._options import measure_texts, sampling, sensitivity_names, solve_dict, state_vector, window_text

if TYPE_CHECKING:
    from ._trajectory import Trajectory

KINDS = "name a file .csv, .h5, .svg, .png, .pdf or .toml, or a folder without such an ending"


def save(path: "Trajectory", target: Union[str, "os.PathLike[str]"], force: bool) -> None:
    file = Path(target)
    if file.suffix in (".csv", ".h5") and not file.is_dir():
        _core.write_run(path.model._system, *path._kept(), str(file))
    elif file.suffix == ".svg":
        _write(file, path._repr_svg_())
    elif file.suffix == ".toml":
        _write(file, record(path))
    elif file.suffix in (".png", ".pdf"):
        axes = path.plot()
        figure = axes[0].figure
        figure.savefig(file, dpi=150)
        from matplotlib import pyplot
        pyplot.close(figure)
    elif file.suffix == "" or file.is_dir():
        _save_folder(path, file, force)
    else:
        raise usage(f"{file}: unknown kind of file", KINDS)


def _save_folder(path: "Trajectory", folder: Path, force: bool) -> None:
    if (folder / "checkpoint").exists():
        raise _refused(f"'{folder}' holds an unfinished computation", "choose another folder")
    if (folder / "run.toml").exists() and not force:
        raise _refused(f"'{folder}' holds results", "choose another folder, or replace them with force=True")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(f"cannot make the folder '{folder}': {error.strerror}", "choose another one") from None
    _write(folder / "run.toml", record(path))
    _core.write_run(path.model._system, *path._kept(), str(folder))
    _write(folder / "plot.svg", path._repr_svg_())


def record(path: "Trajectory") -> str:
    """The run.toml of a run: `saltus again` repeats it, with the rows of `smooth` where times were listed."""
    given, model = path._options, path.model
    start = state_vector(given.get("start"), model.states, model.initial) or []
    sample = sampling(given.get("sample"))
    name = re.sub(r"[^A-Za-z0-9_]+", "_", model.name).strip("_").lower() or "model"
    return _core.run_record(model._system, name, solve_dict(given), start, sample if isinstance(sample, str) else "smooth",
                            sensitivity_names(given.get("sensitivity")), measure_texts(given.get("measure")),
                            window_text(given.get("window")))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _refused(f"cannot write {file}: {error.strerror}", "choose another place") from None


def _refused(message: str, hint: str) -> FileError:
    return FileError(f"{message}\n{hint}", message, hint)
