"""What sweeps and basins give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
from numpy.typing import NDArray

from ._errors import usage
from ._trajectory import End

if TYPE_CHECKING:
    from ._model import Model

Floats = NDArray[np.float64]


class Sweep:
    """Attractors against one parameter, or periods against two. Arrays have an entry per run, in the order of the
    values (the first parameter fastest, several starts of a value next to each other).

    values     what was varied, per run (with two parameters a tuple of two such arrays)
    period     in points of the section; 0: none found
    slow       none found because the points still move
    sliding    segments of sliding per period (per point, where there is none); `events` likewise
    time       of a period
    exponent   the largest Lyapunov exponent, where it was asked for
    measures   by name, per run: over its period, or over all recorded points where it has none
    seen       points passed, those left out included
    end        how each run ended; `message` why
    start      name of the start, or direction of continuation
    points     all recorded points [k, states]; those of run i are points[offsets[i]:offsets[i + 1]]
    """

    def __init__(self, model: "Model", names: Sequence[str], answer: Mapping[str, Any]) -> None:
        self.model, self.names = model, tuple(names)
        self.section: str = answer["section"]
        self.period: NDArray[np.int64] = answer["period"]
        self.slow: NDArray[np.bool_] = answer["slow"]
        self.sliding: Floats = answer["sliding"]
        self.events: Floats = answer["events"]
        self.time: Floats = answer["time"]
        self.exponent: Floats = answer["exponent"]
        self.measures: dict[str, Floats] = answer["measures"]
        self.seen: NDArray[np.int64] = answer["seen"]
        self.end: NDArray[np.str_] = np.array(answer["end"], dtype=str)
        self.message: tuple[str, ...] = tuple(answer["message"])
        self.start: NDArray[np.str_] = np.array(answer["start"], dtype=str)
        self.offsets: NDArray[np.int64] = answer["offsets"]
        self.points: Floats = answer["points"]
        self.seconds: float = answer["seconds"]
        self.computed: NDArray[np.bool_] = answer["computed"]
        self.axes: tuple[Floats, ...] = tuple(answer["values"])
        self._starts: int = answer["starts_per_value"]
        per_run = [np.repeat(axis, self._starts) for axis in self._grid(self.axes)]
        self.values: Any = per_run[0] if len(per_run) == 1 else tuple(per_run)
        settings = [np.repeat(axis, self._starts) for axis in self._grid(answer["settings"])]
        self.parameters: dict[str, Floats] = dict(zip(answer["parameters"], settings))

    @staticmethod
    def _grid(axes: Sequence[Floats]) -> list[Floats]:
        if len(axes) == 1:
            return [axes[0]]
        return [np.tile(axes[0], len(axes[1])), np.repeat(axes[1], len(axes[0]))]

    @property
    def is_complete(self) -> bool:
        """Whether all runs were computed."""
        return bool(self.computed.all())

    def of(self, value: float) -> Floats:
        """The points recorded at the value nearest to this one: [k, states]."""
        if len(self.axes) != 1:
            raise usage("a map of two parameters keeps no points", "vary one parameter")
        i = int(np.argmin(np.abs(self.values - value)))
        first = i - i % self._starts
        return self.points[self.offsets[first]:self.offsets[first + self._starts]]

    def table(self) -> dict[str, Any]:
        """A column per property, an entry per run."""
        values = self.values if isinstance(self.values, tuple) else (self.values,)
        return {**dict(zip(self.names, values)), "start": self.start, "period": self.period, "slow": self.slow,
                "time": self.time, "sliding": self.sliding, "events": self.events, "seen": self.seen, "end": self.end}

    def to_pandas(self) -> Any:
        """A DataFrame of `table()`; pandas must be there."""
        import pandas
        return pandas.DataFrame(self.table())

    def plot(self, state: Optional[str] = None, colour: Optional[str] = None, ax: Any = None, **style: Any) -> Any:
        """The bifurcation diagram with matplotlib; colour by "sliding", "period", "start" or "exponent". Of two
        parameters the map of periods."""
        from .plotting import plot_sweep
        return plot_sweep(self, state, colour, ax=ax, **style)

    def __len__(self) -> int:
        return len(self.period)

    def __repr__(self) -> str:
        ranges = ", ".join(f"{name} from {axis.min():g} to {axis.max():g}" for name, axis in zip(self.names, self.axes))
        counts = Counter(self.period[self.computed].tolist())
        periods = ", ".join(f"{p or 'none'} in {n}" for p, n in sorted(counts.items())[:6])
        return f"<Sweep of {len(self)} runs: {ranges}; periods {periods}>"


@dataclass(frozen=True)
class Exponents:
    """Lyapunov exponents of one run, per unit of time, the largest first; -inf where a direction is forgotten."""

    exponents: Floats
    error: Floats                #: statistical
    time: float                  #: over which they were averaged
    times: Floats                #: of the running estimate
    running: tuple[Floats, ...]  #: one estimate over `times` per exponent
    end: End
    messages: tuple[str, ...]

    def __repr__(self) -> str:
        values = ", ".join(f"{v:.5g} ± {e:.2g}" for v, e in zip(self.exponents, self.error))
        return f"<Exponents {values} over a time of {self.time:.6g}>"


@dataclass(frozen=True)
class Attractor:
    """What trajectories settle on, seen on the section."""

    id: int
    period: int        #: 0: none
    points: Floats     #: [period, states], or a sample where there is no period
    fraction: float    #: of the cells that go there


class Basins:
    """Which initial states go to which attractor.

    group       the number of the attractor of each cell, 1 and up, in the shape of the axes; below 1 a fate
    attractors  those found, `attractors[0]` has the number 1
    fate_names  what the numbers below 1 mean
    axes        edges of the cells by state; `centres` their middles
    """

    def __init__(self, model: "Model", axes: Mapping[str, Floats], answer: Mapping[str, Any]) -> None:
        self.model, self.axes = model, dict(axes)
        self.section: str = answer["section"]
        self.scattered: bool = answer["scattered"]
        flat: NDArray[np.int32] = answer["group"]
        shape = [len(edges) - 1 for edges in axes.values()]
        self.group: NDArray[np.int32] = flat if self.scattered else flat.reshape(shape[::-1]).T
        self._cell_centres: Floats = answer["centres"]
        self.fate_names: dict[int, str] = dict(answer["fates"])
        self.attractors = [Attractor(i + 1, period, points, cells / flat.size)
                           for i, (period, points, cells) in enumerate(answer["attractors"])]
        self.note: str = answer["note"]
        self.computed: int = answer["computed"]
        self.seconds: float = answer["seconds"]

    @property
    def centres(self) -> dict[str, Floats]:
        """Middles of the cells along each axis; of random points their values."""
        if self.scattered:
            return {name: self._cell_centres[:, i] for i, name in enumerate(self.axes)}
        return {name: (edges[1:] + edges[:-1]) / 2 for name, edges in self.axes.items()}

    def at(self, **state: float) -> int:
        """The group of the cell that holds these values of the axes."""
        if set(state) != set(self.axes):
            raise usage(f"at() wants {', '.join(self.axes)}", "give a value for each axis")
        if self.scattered:
            width = np.array([edges[-1] - edges[0] for edges in self.axes.values()])
            wanted = np.array([state[name] for name in self.axes])
            return int(self.group[np.argmin((((self._cell_centres - wanted) / width) ** 2).sum(axis=1))])
        place = []
        for name, edges in self.axes.items():
            k = int(np.searchsorted(edges, state[name], side="right")) - 1
            if state[name] == edges[-1]:
                k = len(edges) - 2
            if not 0 <= k < len(edges) - 1:
                raise ValueError(f"{name} = {state[name]} lies outside {edges[0]:g} .. {edges[-1]:g}")
            place.append(k)
        return int(self.group[tuple(place)])

    def fraction(self, id: int) -> float:
        """The part of the cells with this number."""
        return float(np.mean(self.group == id))

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """The basins with matplotlib: a colour per attractor, grey for what goes to none."""
        from .plotting import plot_basins
        return plot_basins(self, ax=ax, **style)

    def __repr__(self) -> str:
        found = ", ".join(f"{a.id}: period {a.period or 'none'}, {100 * a.fraction:.3g} %" for a in self.attractors[:6])
        return f"<Basins of {' x '.join(str(n) for n in self.group.shape)} cells: {found or 'no attractor'}>"
