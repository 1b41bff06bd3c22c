"""What runs and sections give: columns as views, the state at any time, events."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._errors import RunError, usage

if TYPE_CHECKING:
    from ._model import Model

Floats = NDArray[np.float64]

EVENT_KINDS = ("cross", "slide", "leave", "graze", "impact", "close", "open", "chatter", "jump", "section", "mode")


@dataclass(frozen=True)
class End:
    """How a run ended."""

    why: str        #: time, stop, count, zeno, nonunique, inconsistent, stalled, diverged, undefined or cancelled
    message: str
    t: float
    state: Floats
    mode: str

    @property
    def ok(self) -> bool:
        """Whether it reached what it was asked for."""
        return self.why in ("time", "stop", "count")


@dataclass(frozen=True)
class Start:
    """Where a run started."""

    t: float
    state: Floats
    mode: str


@dataclass(frozen=True)
class Cost:
    """What a run took."""

    steps: int
    events: int
    seconds: float


@dataclass(frozen=True)
class Sliding:
    """How long a surface was slid on, and how far from it the states were at most."""

    time: float
    largest_error: float


@dataclass(frozen=True)
class Pieces:
    """The dense output: polynomials in the time since `start`, `coefficients[piece, state, power]`."""

    start: Floats
    length: Floats
    coefficients: Floats
    mode: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of the states at the end of a run: a row per state, a column per initial value or parameter."""

    parameters: tuple[str, ...]
    by_state: Floats
    by_parameter: Floats


@dataclass(frozen=True)
class Event:
    """One event: what happened, on what, from which mode to which, and the state after it."""

    t: float
    kind: str                  #: cross, slide, leave, graze, impact, close, open, chatter, jump, section or mode
    on: tuple[str, ...]
    before: str
    after: str
    state: Floats
    jumped: Optional[Floats]   #: the state before, where it jumps
    count: int                 #: of a chatter: how many events it sums up


class Events(Sequence[Event]):
    """Every event of a run.

    `events.t`, `events.kind`, ... are arrays, `events["kind"]` the same; `events.array` is all of them as one structured
    array; `events[3]` and iteration give one `Event` each; a slice or `of` gives fewer `Events`.
    """

    array: NDArray[Any]

    def __init__(self, array: NDArray[Any], names: Optional[Sequence[str]] = None) -> None:
        self.array = array
        self._names = None if names is None else tuple(names)  # of all that events may be on, where that is known

    @classmethod
    def _of(cls, d: Mapping[str, Any], names: Sequence[str]) -> "Events":
        t, n = d["t"], d["state"].shape[1]
        letters = max([1, *(len(m) for m in {*d["before"], *d["after"]})])
        kind = np.dtype([("t", "f8"), ("kind", "U8"), ("on", "O"), ("before", f"U{letters}"), ("after", f"U{letters}"),
                         ("state", "f8", (n,)), ("jumped", "f8", (n,)), ("count", "i8")])
        array = np.empty(len(t), dtype=kind)
        for name in ("t", "kind", "before", "after", "state", "jumped", "count"):
            array[name] = d[name]
        on = np.empty(len(t), dtype=object)
        on[:] = d["on"]
        array["on"] = on
        array.flags.writeable = False
        # A step of floor has events where it is slid on, and no name among the surfaces.
        return cls(array, tuple(dict.fromkeys([*names, *(name for group in d["on"] for name in group)])))

    def of(self, kind: Optional[str] = None, on: Optional[str] = None) -> "Events":
        """Those of a kind, and on a surface, constraint, jump or section."""
        if kind is not None and kind not in EVENT_KINDS:
            near = _core.nearest(str(kind), list(EVENT_KINDS))
            raise usage(f"there is no kind of event {kind!r}", f"did you mean '{near}'?" if near else
                        f"kinds: {', '.join(EVENT_KINDS)}; of(on=...) chooses by name")
        if on is not None and self._names is not None and on not in self._names:
            near = _core.nearest(str(on), list(self._names))
            raise usage(f"there is no surface, constraint, jump or section {on!r}",
                        (f"did you mean '{near}'? " if near else "") +
                        (f"there are: {', '.join(self._names)}" if self._names else "the model has none"))
        chosen = np.ones(len(self), dtype=bool)
        if kind is not None:
            chosen &= self.array["kind"] == str(kind)
        if on is not None:
            chosen &= np.fromiter((on in names for names in self.array["on"]), dtype=bool, count=len(self))
        return Events(self.array[chosen], self._names)

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, key: int) -> Event: ...
    @overload
    def __getitem__(self, key: slice) -> "Events": ...
    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in (self.array.dtype.names or ()):
                raise KeyError(f"events have no '{key}'; columns: {', '.join(self.array.dtype.names or ())}")
            return self.array[key]
        if isinstance(key, (slice, np.ndarray, list)):
            return Events(self.array[key], self._names)
        e = self.array[key]
        jumped = None if np.isnan(e["jumped"]).all() else e["jumped"]
        return Event(float(e["t"]), str(e["kind"]), e["on"], str(e["before"]), str(e["after"]), e["state"], jumped,
                     int(e["count"]))

    def __iter__(self) -> Iterator[Event]:
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_") or name == "array":  # not there yet: being unpickled
            raise AttributeError(name)
        if name in (self.array.dtype.names or ()):
            column: NDArray[Any] = self.array[name]
            return column
        raise AttributeError(f"events have no '{name}'; columns: {', '.join(self.array.dtype.names or ())}")

    def __repr__(self) -> str:
        kinds = Counter(self.array["kind"].tolist())
        return f"<{len(self)} events: {', '.join(f'{n} {k}' for k, n in kinds.items())}>" if kinds else "<no events>"

    def _repr_html_(self) -> str:
        from ._display import events_html
        return events_html(self)

    def to_pandas(self) -> Any:
        """A DataFrame with a column per state; pandas must be there."""
        import pandas
        a = self.array
        columns = {name: a[name] for name in ("t", "kind", "before", "after", "count")}
        columns["on"] = ["; ".join(names) for names in a["on"]]
        for i in range(a.dtype["state"].shape[0]):
            columns[f"state{i}"] = a["state"][:, i]
            columns[f"jumped{i}"] = a["jumped"][:, i]
        return pandas.DataFrame(columns)


class Row(Mapping[str, float]):
    """All columns at one time, by name: row["y"] or row.y."""

    def __init__(self, names: Sequence[str], values: Floats) -> None:
        self._names, self._values = tuple(names), values

    def __getitem__(self, name: str) -> float:
        if name not in self._names:
            raise KeyError(name)
        return float(self._values[self._names.index(name)])

    def __getattr__(self, name: str) -> float:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return "<" + ", ".join(f"{n} = {v:.6g}" for n, v in zip(self._names, self._values)) + ">"


def end_of(d: Mapping[str, Any]) -> End:
    return End(d["why"], d["message"], d["t"], d["state"], d["mode"])


class ByName:
    """What has columns has them as attributes as well."""

    def __getitem__(self, name: str) -> Floats:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Floats:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None


class Trajectory(ByName):
    """What a run gave. Columns are views into it: `path.t`, `path.y`, `path["sigma(v)"]`; `path(30.5)` is the state at
    any time; `path.events` is every switch; `path.end` says how it ended."""

    model: "Model"
    columns: tuple[str, ...]
    events: Events
    end: End
    start: Start
    messages: tuple[str, ...]
    cost: Cost
    sliding: Mapping[str, Sliding]
    pieces: Optional[Pieces]
    sensitivity: Optional[Sensitivity]
    measures: Mapping[str, float]

    def __init__(self, model: "Model", answer: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.model = model
        self._options = dict(options)
        self._cells: Floats = answer["cells"]
        self.columns = tuple(model._facts["columns"])
        self.events = Events._of(answer["events"], model._event_names)
        self.end = end_of(answer["end"])
        self.start = Start(answer["start_t"], answer["start_state"], answer["start_mode"])
        self.messages = tuple(answer["messages"])
        self.cost = Cost(answer["steps"], answer["event_count"], answer["seconds"])
        self.sliding = {name: Sliding(*record) for name, record in answer["sliding"].items()}
        p = answer.get("pieces")
        self.pieces = Pieces(p["start"], p["length"], p["coefficients"], np.array(p["mode"], dtype=str)) if p else None
        self.measures = answer.get("measures", {})
        s = answer.get("sensitivity")
        self.sensitivity = Sensitivity(tuple(s[0]), np.array(s[1]), np.array(s[2])) if s else None
        begin, until, mode = answer["ribbon"]
        letters = max([1, *(len(m) for m in set(mode))])
        self._ribbon = np.empty(len(begin), dtype=[("from", "f8"), ("to", "f8"), ("mode", f"U{letters}")])
        self._ribbon["from"], self._ribbon["to"], self._ribbon["mode"] = begin, until, mode

    # ---- columns -----------------------------------------------------------------------------------------------------

    @property
    def t(self) -> Floats:
        """Times of the rows. Where the mode changes a time stands twice, where the state jumps NaN between the two."""
        return self._cells[:, 0]

    @property
    def states(self) -> Floats:
        """[rows, states], a view."""
        return self._cells[:, 1:1 + len(self.model.states)]

    @property
    def ribbon(self) -> NDArray[Any]:
        """Modes over time: a structured array with from, to, mode."""
        return self._ribbon

    @property
    def modes(self) -> NDArray[np.str_]:
        """The mode of every row; "" in the gap of a jump."""
        ribbon, t = self._ribbon, self.t
        if len(ribbon) == 0:
            return np.zeros(len(t), dtype="U1")
        out = np.zeros(len(t), dtype=ribbon["mode"].dtype)
        direction = -1 if self.end.t < self.start.t else 1
        gap = np.isnan(t)
        before = np.searchsorted(direction * ribbon["from"], direction * t, side="left") - 1
        after = np.searchsorted(direction * ribbon["from"], direction * t, side="right") - 1
        # Of a time that stands twice the first row is before the event.
        first = np.zeros(len(t), dtype=bool)
        first[:-1] = (t[:-1] == t[1:]) | gap[1:]
        place = np.clip(np.where(first, before, after), 0, len(ribbon) - 1)
        out[~gap] = ribbon["mode"][place[~gap]]
        return out

    def __getitem__(self, name: str) -> Floats:
        if name in self.columns:
            return self._cells[:, self.columns.index(name)]
        packed = str(name).replace(" ", "")
        for i, column in enumerate(self.columns):
            if column.replace(" ", "") == packed:
                return self._cells[:, i]
        near = _core.nearest(str(name), list(self.columns))
        raise KeyError(f"there is no column '{name}'; " +
                       (f"did you mean '{near}'?" if near else f"columns: {', '.join(self.columns)}"))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(c for c in self.columns if c.isidentifier())]

    # ---- at any time -------------------------------------------------------------------------------------------------

    def __call__(self, t: ArrayLike, side: str = "right") -> Floats:
        """State at t: [n] for a number, [k, n] for an array. At a jump the state after it, or before with side="left"."""
        return self._evaluate(t, side, 0)

    def derivative(self, t: ArrayLike, side: str = "right") -> Floats:
        """The rates of the states at t, shaped as the states."""
        return self._evaluate(t, side, 1)

    def _evaluate(self, t: ArrayLike, side: str, order: int) -> Floats:
        if side not in ("left", "right"):
            raise usage(f"side={side!r}: no such side", "sides: left, right")
        times = np.asarray(t, dtype=float)
        p = self.pieces
        if p is None:
            raise usage("the run was made without dense output", "leave out dense=False")
        low, high = sorted((self.start.t, self.end.t))
        if len(p) and len(times.ravel()):
            last = p.start[-1] + p.length[-1]
            if abs(last - self.end.t) > 1e-9 * max(1.0, abs(self.end.t)):  # not all pieces fitted into memory
                low, high = sorted((self.start.t, last))
        if not ((times >= low) & (times <= high)).all():
            raise ValueError(f"the run goes from {self.start.t:.15g} to {self.end.t:.15g}")
        flat = times.ravel()
        if len(p) == 0:
            out = np.tile(self.end.state if order == 0 else np.full(len(self.end.state), np.nan), (len(flat), 1))
        else:
            out = _core.evaluate(p.start, p.length, p.coefficients, flat, side == "left", order)
            if order == 0 and side == "right" and (flat == self.end.t).any():
                out = out.copy()
                out[flat == self.end.t] = self.end.state
        return out.reshape(times.shape + (out.shape[1],))

    def at(self, t: float) -> Row:
        """All columns at t by name: path.at(3.2).y, path.at(3.2)["sigma(v)"]."""
        again = self.model.run(options={**self._options, "sample": [float(t)], "dense": False})
        return Row(again.columns, again._cells[0])

    # ---- further -----------------------------------------------------------------------------------------------------

    def continue_(self, until: Any, **values: Any) -> "Trajectory":
        """A run that goes on where this one ended, with other parameters if they are given."""
        options = {k: v for k, v in self._options.items() if k not in ("until", "from_", "start")}
        return self.model.run(options={**options, "until": until, "from_": self.end.t, "start": self.end.state},
                              values=values)

    def check(self) -> "Trajectory":
        """Itself; raises RunError if it ended badly."""
        if not self.end.ok:
            raise RunError(f"the run ended at t = {self.end.t:.6g}: {self.end.why}" +
                           (f": {self.end.message}" if self.end.message else ""))
        return self

    def table(self) -> dict[str, Floats]:
        """The columns by name."""
        return {name: self._cells[:, i] for i, name in enumerate(self.columns)}

    def to_pandas(self) -> Any:
        """A DataFrame with t as its index; pandas must be there."""
        import pandas
        return pandas.DataFrame(self._cells[:, 1:], index=pandas.Index(self.t, name="t"), columns=self.columns[1:])

    def save(self, target: Union[str, os.PathLike[str]], force: bool = False) -> None:
        """Into a file, by the ending of its name: the rows as .csv, rows and events as .h5, the picture as .svg, .png or
        .pdf, what made the run as .toml (`saltus again` repeats it). A name without an ending is a folder with all of
        them, as `saltus run -o` makes it; one that holds results is replaced with `force` only."""
        from ._files import save
        save(self, target, force)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Rows and events as the core takes them back."""
        r, e = self._ribbon, self.events.array
        rows = {"cells": self._cells, "from": r["from"].copy(), "to": r["to"].copy(), "mode": r["mode"].tolist()}
        events = {name: e[name].copy() for name in ("t", "state", "jumped", "count")}
        events.update({name: e[name].tolist() for name in ("kind", "on", "before", "after")})
        return rows, events

    def plot(self, *names: str, ax: Any = None, events: bool = True, ribbon: bool = True, **style: Any) -> Any:
        """Columns over time with matplotlib: states, or those named; events as marks, the mode as a ribbon."""
        from .plotting import plot_trajectory
        return plot_trajectory(self, names, ax=ax, events=events, ribbon=ribbon, **style)

    def plot_plane(self, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None, **style: Any) -> Any:
        """One column against another with matplotlib: the first two states, or those named."""
        from .plotting import plot_plane
        return plot_plane(self, x, y, ax=ax, **style)

    def animate(self, x: Optional[str] = None, y: Optional[str] = None, seconds: float = 10) -> Any:
        """A point that runs through the phase plane: a matplotlib FuncAnimation."""
        from .plotting import animate
        return animate(self, x, y, seconds)

    def _repr_svg_(self) -> str:
        from ._display import trajectory_svg
        return trajectory_svg(self)

    def __repr__(self) -> str:
        kinds = Counter(self.events.array["kind"].tolist())
        events = f"{len(self.events)} events" + (": " + ", ".join(f"{n} {k}" for k, n in kinds.items()) if kinds else "")
        return (f"<Trajectory t = {self.start.t:g} .. {self.end.t:g}, ended: {self.end.why}; {events}; "
                f"{self.cost.steps} steps in {_duration(self.cost.seconds)}>")

    def __len__(self) -> int:
        return len(self._cells)


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


class Section(ByName):
    """Points of a Poincaré or stroboscopic map: `k`, `t`, `states` [count, n], and each state by its name."""

    model: "Model"
    name: str
    t: Floats
    states: Floats
    end: End
    messages: tuple[str, ...]
    cost: Cost

    def __init__(self, model: "Model", answer: Mapping[str, Any], skip: int) -> None:
        self.model, self.name, self._skip = model, answer["section"], skip
        self.t, self.states = answer["t"], answer["points"]
        self.end, self.messages = end_of(answer["end"]), tuple(answer["messages"])
        self.cost = Cost(answer["steps"], answer["event_count"], answer["seconds"])

    @property
    def k(self) -> NDArray[np.int64]:
        """Numbers of the points, those left out counted."""
        return np.arange(self._skip + 1, self._skip + 1 + len(self.t))

    def __getitem__(self, name: str) -> Floats:
        if name in self.model.states:
            return self.states[:, self.model.states.index(name)]
        near = _core.nearest(name, list(self.model.states))
        raise KeyError(f"there is no state '{name}'" + (f"; did you mean '{near}'?" if near else ""))

    def next_return(self, name: str) -> tuple[Floats, Floats]:
        """A state and its next value: what a return map shows."""
        values = self[name]
        return values[:-1], values[1:]

    def table(self) -> dict[str, NDArray[Any]]:
        """k, t and the states by name."""
        return {"k": self.k, "t": self.t, **{name: self[name] for name in self.model.states}}

    def plot(self, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None, **style: Any) -> Any:
        """The points with matplotlib: two states against each other, or one against its next value."""
        from .plotting import plot_section
        return plot_section(self, x, y, ax=ax, **style)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<Section '{self.name}': {len(self)} points, ended: {self.end.why}>"
