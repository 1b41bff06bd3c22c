"""Keywords of a question: options of saltus, and values of the model's own names."""

from __future__ import annotations

import functools
import inspect
import keyword
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar, Union, cast

import numpy as np

from . import _core
from ._errors import usage

MOST_VALUES, MOST_CELLS = 10_000_000, 100_000_000

Value = Union[float, int, str, np.number]

# How to compute: every option of the core under its name in Python, with its kind ("formula", "number", "word", "flag",
# "count", "settings").
SOLVE: dict[str, str] = {}
_CORE_NAME: dict[str, str] = {}
for _name, _kind in _core.solve_options():
    _python = _name.replace("-", "_") + ("_" if keyword.iskeyword(_name) else "")
    SOLVE[_python], _CORE_NAME[_python] = _kind, _name


def too_large(name: str) -> Exception:
    return usage(f"{name} is too large for a number", f"numbers go up to {sys.float_info.max:.2g}")


def plain_text(text: str, what: str) -> str:
    """Text that can be written: half of a surrogate pair stands for no character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise usage(f"{what}: {text[error.start]!a} is no character",
                    "it is half of a surrogate pair, as text has it that was cut or decoded wrongly") from None
    return text


def once(more: Mapping[str, Any], values: Optional[Mapping[str, Any]], call: str, name: str = "values") -> dict[str, Any]:
    """Values given by keyword and in a mapping, none of them in both."""
    for given in mapping(values or {}, name):
        if given in more:
            raise usage(f"{call}() has '{given}' twice: as a keyword and in {name}", "give it once")
    return {**more, **(values or {})}


def formula(value: Any, name: str) -> str:
    """A number to its last digit, or a formula as it is."""
    if isinstance(value, str):
        return plain_text(value, plain_text(name, "a name"))
    try:
        plain = float(value)
    except (TypeError, ValueError):
        raise usage(f"{name}={value!r} is neither a number nor a formula", f"write {name}=0.3 or {name}=\"1/3\"") from None
    except OverflowError:
        raise too_large(name) from None
    if not math.isfinite(plain):
        raise usage(f"{name} is {plain}", "give a finite number")
    return _core.number(plain)


def number(value: Any, name: str) -> float:
    """A number that is none of a formula."""
    if isinstance(value, str):
        raise usage(f"{name}={value!r} is no number", f"write {name}=0.3")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise usage(f"{name}={value!r} is no number", f"write {name}=0.3") from None
    except OverflowError:
        raise too_large(name) from None


def whole(value: Any, name: str, least: int = -2**62) -> int:
    """A whole number."""
    if isinstance(value, (bool, str)) or number(value, name) != np.floor(number(value, name)) or abs(value) > 2**62:
        raise usage(f"{name}={value!r} is no whole number", f"write {name}=10")
    if value < least:
        raise usage(f"{name}={value!r} is too small", f"give {least} or more")
    return int(value)


def mapping(value: Any, name: str) -> Mapping[Any, Any]:
    """A mapping from names."""
    if not isinstance(value, Mapping):
        raise usage(f"{name}={value!r} is no mapping", f"write {name}={{\"name\": ...}}")
    for key in value:
        if not isinstance(key, str):
            raise usage(f"{name}: {key!r} is no name", f"write {name}={{\"name\": ...}}")
        plain_text(key, name)
    return value


# What options are, but for those that are formulas or have a form of their own.
WHOLE = {"count", "skip", "settle", "longest", "period", "points", "sideband"}
COUNTED = {"starts", "random", "max_events"}  # at least one
WORDS = {"section", "method", "join", "continue_"} | {name for name, kind in SOLVE.items() if kind == "word"}
FLAGS = {"dense", "refine", "exponent", "guess", "backward", "equilibrium", "all", "per_cycle", "profile", "robust"} | \
    {name for name, kind in SOLVE.items() if kind == "flag"}
NUMBERS = {"step"} | {name for name, kind in SOLVE.items() if kind == "number"}
MAPPINGS = {"modulo", "box", "begin"} | {name for name, kind in SOLVE.items() if kind == "settings"}
NATURAL = {"seed"} | {name for name, kind in SOLVE.items() if kind == "count"}  # or zero


def check_kind(name: str, value: Any) -> None:
    """Throws UsageError for an option that cannot be what it must be; which values it may have is the core's to say."""
    if isinstance(value, str):
        plain_text(value, name)
    if name in WHOLE:
        whole(value, name)
    elif name in COUNTED:
        whole(value, name, 1)
    elif name in NATURAL:
        whole(value, name, 0)
    elif name in WORDS and not isinstance(value, str):
        raise usage(f"{name}={value!r} is no word", f"write {name}=\"...\"")
    elif name == "engine" and value == "both":
        raise usage("engine=\"both\" compares two runs, which the command line does",
                    "run twice, with engine=\"event\" and engine=\"step\"")
    elif name in FLAGS and not isinstance(value, (bool, np.bool_)):
        raise usage(f"{name}={value!r} is neither True nor False")
    elif name in NUMBERS:
        number(value, name)
    elif name in MAPPINGS:
        mapping(value, name)
    elif name == "progress" and not isinstance(value, bool) and not callable(value):
        raise usage(f"progress={value!r} is neither True nor a function", "give a function of how much is done, 0 to 1")
    elif name == "stop" and not callable(getattr(value, "is_set", None)):
        raise usage(f"stop={value!r} is no event", "give a threading.Event")


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: formula(value, name) for name, value in values.items()}


_TYPES = {"formula": Optional[Value], "number": Optional[float], "word": Optional[str], "flag": Optional[bool],
          "count": Optional[int], "settings": Optional[Mapping[str, Any]]}


Question = TypeVar("Question", bound=Callable[..., Any])


def takes_solve(command: str, without: Sequence[str] = ()) -> Callable[[Question], Question]:
    """Gives a question the options of how to compute that `saltus COMMAND` takes: they come in by `more`, and stand in
    its signature and at the end of its text."""
    rows = {name: f"{words}: {kind}" if "|" in kind and "=" not in kind else words
            for name, kind, words, commands in _core.option_table() if command in commands.split()}
    names = [name for name in SOLVE if _CORE_NAME[name] in rows and name not in without]

    def dress(question: Question) -> Question:
        plain = inspect.signature(question)
        own = [p for p in plain.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [p for p in plain.parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
        added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_TYPES[SOLVE[name]])
                 for name in names if name not in plain.parameters]

        @functools.wraps(question)
        def ask(*given: Any, **named: Any) -> Any:
            return question(*given, **named)
        ask.__signature__ = plain.replace(parameters=own + added + more)  # type: ignore[attr-defined]
        width = max(len(name) for name in names) + 2
        lines = [f"{name:{width}}{rows[_CORE_NAME[name]]}" for name in names]
        ask.__doc__ = inspect.cleandoc(question.__doc__ or "") + "\n\nHow it is computed:\n\n" + \
            "\n".join(lines) + "\n"
        return cast(Question, ask)
    return dress


def keywords(scope: Mapping[str, Any], command: Callable[..., Any], *apart: str) -> dict[str, Any]:
    """The options among the arguments of a question, which begins with `keywords(locals(), Model.run, ...)`: its own,
    and those of how to compute among `more`. `apart`: those of its arguments that are no options."""
    skipped = ("self", "values", "options", "more", *apart)
    named = {name: value for name, value in scope.items() if name not in skipped}
    for name in inspect.signature(command).parameters:
        if name not in scope and name not in skipped:
            named[name] = scope["more"].pop(name, None)
    return named


def sort_keywords(model_names: Sequence[str], named: Mapping[str, Any], values: Optional[Mapping[str, Any]],
                  options: Optional[Mapping[str, Any]], rest: Mapping[str, Any], call: str) -> tuple[dict, dict]:
    """The options that were given (None: not given), and the values of names of the model."""
    given = {name: value for name, value in named.items() if value is not None}
    for name in given:
        if name in model_names:
            raise usage(f"'{name}' is an option of {call}() and a name of the model",
                        f"write {call}(values={{\"{name}\": ...}}) or {call}(options={{\"{name}\": ...}})")
    for name in rest:
        plain_text(name, call)
        if name not in model_names:
            near = _core.nearest(name, [*model_names, *named])
            raise usage(f"{call}() has no option '{name}', and the model no such parameter or state",
                        f"did you mean '{near}'?" if near else f"the model has {', '.join(model_names)}")
    for name in mapping(options or {}, "options"):
        if name not in named:
            near = _core.nearest(name, list(named))
            raise usage(f"{call}() has no option '{name}'", f"did you mean '{near}'?" if near else "")
    given = once(given, options, call, "options")
    for name, value in given.items():
        check_kind(name, value)
    return given, once(rest, values, call)


def solve_dict(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of how to compute as the core takes them: texts."""
    out: dict[str, Any] = {}
    for name, kind in SOLVE.items():
        if name not in given:
            continue
        value, key = given[name], _CORE_NAME[name]
        if kind == "settings":
            out[key] = {surface: side_text(side) for surface, side in value.items()}
        elif kind == "flag":
            out[key] = "true" if value else "false"
        elif kind == "count":
            if value:
                out[key] = str(int(value))
        else:
            out[key] = formula(value, name)
    return out


def numbers(given: Any, what: str) -> list[float]:
    """A column of numbers."""
    try:
        return [float(v) for v in np.asarray(given, dtype=float).ravel()]
    except (TypeError, ValueError):
        raise usage(f"{what} are no numbers", "give a list or an array of numbers") from None


def data_table(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment as the core takes it: times, and columns by quantity or events."""
    columns = dict(mapping(given, name))
    if "t" not in columns:
        raise usage(f"the experiment '{name}' has no times", f"write {name}={{\"t\": [...], \"y\": [...]}}")
    times = numbers(columns.pop("t"), f"{name}: t")
    sigma, own, events = columns.pop("sigma", {}), columns.pop("with", {}), columns.pop("events", None)
    out: dict[str, Any] = {"name": plain_text(name, "data"), "t": times, "with": texts(mapping(own, "with")), "series": []}

    def column(values: Any, what: str) -> list[float]:
        found = numbers(values, what)
        if len(found) == 1 and what.endswith("sigma"):
            found *= len(times)
        if len(found) != len(times):
            raise usage(f"{what} has {len(found)} values, and there are {len(times)} times", "give one for each time")
        return found

    if events is not None:
        on, kind = events
        out.update({"on": str(on), "kind": str(kind)})
        if sigma:
            out["sigma"] = column(sigma, f"{name}: sigma")
    elif not columns:
        raise usage(f"the experiment '{name}' has no data", f"write {name}={{\"t\": [...], \"y\": [...]}}")
    for quantity, values in columns.items():
        series: dict[str, Any] = {"quantity": quantity, "values": column(values, f"{name}: {quantity}")}
        of = sigma.get(quantity) if isinstance(sigma, Mapping) else sigma
        if of is not None:
            series["sigma"] = column(of, f"{name}: {quantity}: sigma")
        out["series"].append(series)
    return out


def measure_texts(measure: Union[str, Sequence[str], None]) -> list[str]:
    """One measure, or several."""
    several = [measure] if isinstance(measure, str) else list(measure or [])
    for one in several:
        if not isinstance(one, str):
            raise usage(f"measure={one!r} is no measure", "write measure=\"mean(x)\"")
        plain_text(one, "measure")
    return several


def window_text(window: Any) -> str:
    """Two times, or text."""
    if window is None:
        return ""
    if isinstance(window, str):
        return plain_text(window, "window")
    if np.shape(window) != (2,):
        raise usage(f"window={window!r} is no stretch of time", "write window=(0.8, 1)")
    return ":".join(formula(t, "window") for t in window)


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
        for name in mapping(start, "start"):
            if name not in names:
                near = _core.nearest(name, list(names))
                raise usage(f"start: there is no state '{name}'", f"did you mean '{near}'?" if near else
                            f"states: {', '.join(names)}")
        return [number(start.get(name, initial[name]), f"start: {name}") for name in names]
    if isinstance(start, str) or np.ndim(start) != 1:
        raise usage(f"start={start!r} is no state", f"give values of {', '.join(names)}, in this order, or a mapping")
    values = [number(v, "start") for v in start]
    if len(values) != len(names):
        raise usage(f"start has {len(values)} values, the model {len(names)} states",
                    f"write them in this order: {', '.join(names)}")
    return values


def range_values(name: str, wanted: Any) -> list[float]:
    """Values of something varied: an array of them, or (from, to, how many)."""
    if isinstance(wanted, tuple) and len(wanted) == 3:
        low, high, n = number(wanted[0], name), number(wanted[1], name), whole(wanted[2], f"{name}: how many", 1)
        if n > MOST_VALUES or not math.isfinite(high - low):
            raise usage(f"{name}={wanted}: no such values", f"write (from, to, how many), at most {MOST_VALUES}, or a list of values")
        return [low, *(low + (high - low) * (i / (n - 1)) for i in range(1, n - 1)), *([high] if n > 1 else [])]
    try:
        values = [float(v) for v in np.atleast_1d(np.asarray(wanted, dtype=float))]
    except (TypeError, ValueError, OverflowError):
        values = []
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
        low, high, n = number(wanted[0], name), number(wanted[1], name), whole(wanted[2], f"{name}: cells")
        if not low < high or not math.isfinite(high - low) or not 1 <= n <= MOST_CELLS:
            raise usage(f"{name}={wanted}: no such cells", "write (from, to, cells) with from below to: (-2, 2, 400)")
        edges = np.array([low + (high - low) * (i / n) for i in range(n + 1)])
        edges[-1] = high
        return edges
    try:
        edges = np.asarray(wanted[:2] if random else wanted, dtype=float)
    except (TypeError, ValueError):
        edges = np.array([])
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all() or not np.isfinite(edges).all():
        raise usage(f"{name}: these are no edges of cells", "give two or more numbers in ascending order")
    return edges


def per_state(wanted: Any, states: Sequence[str], option: str) -> list[float]:
    """A number for all states, or some by name."""
    for value in wanted.values() if isinstance(wanted, Mapping) else [wanted]:
        if not number(value, option) > 0:
            raise usage(f"{option}={value!r} is no distance", "give a positive number")
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

    def ends(name: str) -> tuple[float, float]:
        if name not in wanted:
            return float("nan"), float("nan")
        if np.shape(wanted[name]) != (2,):
            raise usage(f"box: {name}={wanted[name]!r} is no interval", f"write {{\"{name}\": (-2, 2)}}")
        low, high = (number(v, f"box: {name}") for v in wanted[name])
        if not low <= high or not math.isfinite(high - low):
            raise usage(f"box: {name}={wanted[name]!r} is no interval", "give a smaller and a larger end")
        return low, high
    return [ends(name) for name in states]


def several_starts(wanted: Any, names: Sequence[str], initial: Mapping[str, float]) -> list[list[float]]:
    """One state, or a list of them."""
    if isinstance(wanted, str) or not isinstance(wanted, Mapping) and (np.ndim(wanted) == 0 or len(wanted) == 0):
        raise usage(f"start={wanted!r} is no state", f"give values of {', '.join(names)}, or a list of such states")
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
    text = os.fspath(path)
    return plain_text(text, "path") if isinstance(text, str) else text


def sampling(sample: Any) -> Any:
    """Which rows are wanted: a word, an interval as text, or a list of times."""
    if sample is None:
        return "smooth"
    if isinstance(sample, str):
        return plain_text(sample, "sample")
    if np.ndim(sample) == 1:
        return [number(t, "sample") for t in sample]
    return formula(sample, "sample")


def sensitivity_names(wanted: Any) -> Optional[list[str]]:
    """Names of parameters, none for all of them, None for no derivatives; one name alone is no list of its letters."""
    if wanted is None or wanted is False:
        return None
    if wanted is True:
        return []
    if isinstance(wanted, str):
        return [wanted]
    if not isinstance(wanted, Sequence) or not all(isinstance(name, str) for name in wanted):
        raise usage(f"sensitivity={wanted!r} is neither True nor names of parameters", "write sensitivity=[\"F\"]")
    return list(wanted)
