"""Results in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Union

import numpy as np

from . import _core
from ._errors import usage

if TYPE_CHECKING:
    from ._trajectory import Trajectory


def save(path: "Trajectory", target: Union[str, "os.PathLike[str]"]) -> None:
    file = Path(target)
    if file.suffix == ".csv":
        with open(file, "w", encoding="utf-8") as out:
            out.write(",".join(f'"{c}"' if "," in c else c for c in path.columns) + "\n")
            for row in path._cells:
                out.write(",".join("nan" if np.isnan(v) else _core.number(v) for v in row) + "\n")
    elif file.suffix == ".svg":
        file.write_text(path._repr_svg_(), encoding="utf-8")
    elif file.suffix in (".png", ".pdf"):
        axes = path.plot()
        figure = axes[0].figure
        figure.savefig(file, dpi=150)
        from matplotlib import pyplot
        pyplot.close(figure)
    else:
        raise usage(f"{file}: unknown kind of file", "name a file .csv, .svg, .png or .pdf")
