"""Keywords of a question: options of saltus, and values of the model's own names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from . import _core
from ._errors import usage

Value = Union[float, int, str, np.number]

# What every question takes, under its name in Python.
SOLVE = ("until", "from_", "tolerance", "engine", "dt", "adaptive", "theta", "flow", "leave", "attract", "zeno", "native",
         "threads")


def formula(value: Any, name: str) -> str:
    """A number to its last digit, or a formula as it is."""
    if isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise usage(f"{name}={value!r} is neither a number nor a formula", f"write {name}=0.3 or {name}=\"1/3\"") from None
    return _core.number(number)


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: formula(value, name) for name, value in values.items()}


def keywords(scope: Mapping[str, Any], *apart: str) -> dict[str, Any]:
    """The options among the arguments of a question, which begins with `keywords(locals(), ...)`; `apart`: those of its
    arguments that are no options."""
    return {name: value for name, value in scope.items() if name not in ("self", "values", "options", "more", *apart)}


def sort_keywords(model_names: Sequence[str], named: Mapping[str, Any], values: Optional[Mapping[str, Any]],
                  options: Optional[Mapping[str, Any]], rest: Mapping[str, Any], call: str) -> tuple[dict, dict]:
    """The options that were given (None: not given), and the values of names of the model."""
    given = {name: value for name, value in named.items() if value is not None}
    for name in given:
        if name in model_names:
            raise usage(f"'{name}' is an option of {call}() and a name of the model",
                        f"write {call}(values={{\"{name}\": ...}}) or {call}(options={{\"{name}\": ...}})")
    for name in rest:
        if name not in model_names:
            near = _core.nearest(name, [*model_names, *named])
            raise usage(f"{call}() has no option '{name}', and the model no such parameter or state",
                        f"did you mean '{near}'?" if near else f"the model has {', '.join(model_names)}")
    for name, value in (options or {}).items():
        if name not in named:
            near = _core.nearest(name, list(named))
            raise usage(f"{call}() has no option '{name}'", f"did you mean '{near}'?" if near else "")
        given[name] = value
    return given, {**rest, **(values or {})}


def solve_dict(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the engines as the core takes them."""
    out: dict[str, Any] = {}
    for name in SOLVE:
        if name not in given:
            continue
        value, key = given[name], name.rstrip("_")
        if key in ("from", "until"):
            value = formula(value, name)
        elif key == "leave":
            value = {surface: side_text(side) for surface, side in value.items()}
        elif key in ("tolerance", "dt", "theta", "attract"):
            value = float(value)
        elif key == "threads":
            value = int(value)
        out[key] = value
    return out


def side_text(side: Any) -> str:
    if isinstance(side, str):
        return side
    return {1: "+1", -1: "-1", 0: "0"}.get(side, str(side))


def check_word(word: Any, known: Sequence[str], what: str) -> str:
    if word not in known:
        raise usage(f"unknown {what} {word!r}", f"known: {', '.join(known)}")
    return str(word)


def state_vector(start: Any, names: Sequence[str], initial: Mapping[str, float]) -> Optional[list[float]]:
    """A start as one number per state; of a mapping what is left out is the model's."""
    if start is None:
        return None
    if isinstance(start, Mapping):
        for name in start:
            if name not in names:
                near = _core.nearest(name, list(names))
                raise usage(f"start: there is no state '{name}'", f"did you mean '{near}'?" if near else
                            f"states: {', '.join(names)}")
        return [float(start.get(name, initial[name])) for name in names]
    values = [float(v) for v in start]
    if len(values) != len(names):
        raise usage(f"start has {len(values)} values, the model {len(names)} states",
                    f"write them in this order: {', '.join(names)}")
    return values


def range_values(name: str, wanted: Any) -> list[float]:
    """Values of something varied: an array of them, or (from, to, how many)."""
    if isinstance(wanted, tuple) and len(wanted) == 3 and float(wanted[2]).is_integer() and wanted[2] >= 1:
        low, high, n = float(wanted[0]), float(wanted[1]), int(wanted[2])
        return [low, *(low + (high - low) * (i / (n - 1)) for i in range(1, n - 1)), *([high] if n > 1 else [])]
    values = [float(v) for v in np.atleast_1d(wanted)]
    if not values or not np.isfinite(values).all():
        raise usage(f"{name}: these are no values", "give an array of finite numbers, or (from, to, how many)")
    return values


def cell_edges(name: str, wanted: Any, states: Sequence[str], random: bool) -> Any:
    """Edges of cells: (from, to, cells), or the edges themselves; of random points (from, to)."""
    if name not in states:
        near = _core.nearest(name, list(states))
        raise usage(f"the model has no state '{name}'", f"did you mean '{near}'?" if near else
                    f"states: {', '.join(states)}")
    if isinstance(wanted, tuple) and len(wanted) == 3 and not random:
        low, high, n = float(wanted[0]), float(wanted[1]), int(wanted[2])
        if not low < high or n < 1:
            raise usage(f"{name}={wanted}: no such cells", "write (from, to, cells) with from below to: (-2, 2, 400)")
        edges = np.array([low + (high - low) * (i / n) for i in range(n + 1)])
        edges[-1] = high
        return edges
    edges = np.asarray(wanted[:2] if random else wanted, dtype=float)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise usage(f"{name}: these are no edges of cells", "give two or more numbers in ascending order")
    return edges


def per_state(wanted: Any, states: Sequence[str], option: str) -> list[float]:
    """A number for all states, or some by name."""
    if not isinstance(wanted, Mapping):
        return [float(wanted)] * len(states)
    for name in wanted:
        if name not in states:
            raise usage(f"{option}: there is no state '{name}'", f"states: {', '.join(states)}")
    return [float(wanted.get(name, float("nan"))) for name in states]


def box_of(wanted: Any, states: Sequence[str]) -> list[tuple[float, float]]:
    if not wanted:
        raise usage("random starts need a box", "give the interval of each state: box={\"y\": (-2, 2)}")
    for name in wanted:
        if name not in states:
            raise usage(f"box: there is no state '{name}'", f"states: {', '.join(states)}")
    none = (float("nan"), float("nan"))
    return [tuple(float(v) for v in wanted[name]) if name in wanted else none for name in states]  # type: ignore[misc]


def several_starts(wanted: Any, names: Sequence[str], initial: Mapping[str, float]) -> list[list[float]]:
    """One state, or a list of them."""
    if isinstance(wanted, Mapping) or np.ndim(wanted) == 1 and not isinstance(wanted[0], Mapping):
        wanted = [wanted]
    return [state_vector(one, names, initial) or [] for one in wanted]


class Bar:
    """A bar on stderr, where somebody sees it."""

    def __init__(self) -> None:
        self._drawn = False

    def __call__(self, done: float) -> bool:
        width = 30
        full = int(width * min(1.0, max(0.0, done)))
        sys.stderr.write(f"\r[{'#' * full}{'.' * (width - full)}] {100 * done:3.0f} %")
        sys.stderr.flush()
        self._drawn = True
        return True

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r" + " " * 42 + "\r")
            sys.stderr.flush()


def progress_function(progress: Any) -> Optional[Callable[[float], Any]]:
    if progress is None or progress is False:
        return None
    return Bar() if progress is True else progress


def finish_progress(progress: Any) -> None:
    if isinstance(progress, Bar):
        progress.clear()


def path_text(path: Any) -> str:
    return os.fspath(path)
