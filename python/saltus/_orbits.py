"""What searches for orbits and equilibria give, and branches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._trajectory import Events, Trajectory

if TYPE_CHECKING:
    from ._model import Model

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class Leg:
    """A stretch of an orbit in one mode."""

    mode: str
    length: float      #: time
    ended_by: str      #: "cross v", "section"
    stretch: float     #: largest factor by which what ends it stretches a tangent


class Orbit:
    """A periodic orbit; `if orbit:` asks whether one was found, `orbit.message` says why not.

    period       until it closes; `returns` to the section in that time
    t, state     where it passes the section, and the `mode` there
    stable       whether all multipliers lie in the unit circle
    multipliers  complex, the largest first, without the trivial one of an autonomous system; infinite where the orbit is
                 infinitely unstable
    trivial      the trivial one, which tells how exact the others are; None for a driven system
    monodromy    [n, n]
    symmetric    whether its second half is the first with some signs changed
    legs         its stretches in one mode, in order
    path         one period as a Trajectory: columns, dense output, events
    residual     how far it is from closing, relative to the size of each state
    """

    def __init__(self, model: "Model", answer: Mapping[str, Any]) -> None:
        self.model = model
        self.found: bool = answer["found"]
        self.why: str = answer["why"]
        self.message: str = answer["message"]
        self.residual: float = answer["residual"]
        n = len(model.states)
        nan = float("nan")
        self.period: float = answer.get("period", nan)
        self.returns: int = answer.get("returns", 0)
        self.t: float = answer.get("t", nan)
        self.state: Floats = answer.get("state", np.full(n, nan))
        self.mode: str = answer.get("mode", "")
        self.stable: bool = answer.get("stable", False)
        self.symmetric: bool = answer.get("symmetric", False)
        self.multipliers: Complexes = answer.get("multipliers", np.empty(0, dtype=complex))
        self.trivial: Optional[complex] = answer.get("trivial")
        self.monodromy: Floats = answer.get("monodromy", np.full((n, n), nan))
        self.legs: tuple[Leg, ...] = tuple(Leg(*leg) for leg in answer.get("legs", ()))
        self.messages: tuple[str, ...] = tuple(answer.get("messages", ()))
        self.path: Optional[Trajectory] = Trajectory(model, answer["path"], {}) if self.found else None

    @property
    def kind(self) -> str:
        """"orbit", or "none"."""
        return "orbit" if self.found else "none"

    @property
    def events(self) -> Events:
        """Every event over one period."""
        return self._there().events

    @property
    def signature(self) -> tuple[str, ...]:
        """The modes of its legs."""
        return tuple(leg.mode for leg in self.legs)

    def __call__(self, t: Any, side: str = "right") -> Floats:
        """State at t, at any time: the orbit repeats itself (states that grow by a modulus stay in the first period)."""
        path = self._there()
        since = np.mod(np.asarray(t, dtype=float) - path.start.t, self.period)
        if path.end.t < path.start.t:
            since -= self.period
        return path(path.start.t + since, side)

    def plot(self, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None, **style: Any) -> Any:
        """The closed curve with matplotlib, and the multipliers about the unit circle beside it."""
        from .plotting import plot_orbit
        self._there()
        return plot_orbit(self, x, y, ax=ax, **style)

    def _there(self) -> Trajectory:
        if self.path is None:
            raise ValueError(f"there is no orbit: {self.message}")
        return self.path

    def __bool__(self) -> bool:
        return self.found

    def __repr__(self) -> str:
        if not self.found:
            return f"<no Orbit: {self.message}>"
        returns = f" ({self.returns} returns)" if self.returns > 1 else ""
        known = max(1e-9, 10 * abs(self.trivial - 1) if self.trivial is not None else 0)
        neutral = len(self.multipliers) and abs(abs(self.multipliers[0]) - 1) <= known
        stability = "neutral" if neutral else "stable" if self.stable else "unstable"
        return f"<Orbit of period {self.period:.6g}{returns}, {stability}; " \
               f"multipliers {complex_words(self.multipliers)}>"


@dataclass(frozen=True)
class Equilibrium:
    """A point where the system rests; `if rest:` asks whether one was found, `rest.message` says why not."""

    kind: str                        #: "equilibrium", "pseudo-equilibrium", "equilibrium-set" or "none"
    t: float
    state: Floats
    mode: str
    stable: bool
    eigenvalues: Complexes           #: largest real part first
    residual: float
    margin: Optional[float]          #: of contacts at rest: the smallest force
    ends: Optional[tuple[Floats, Floats]]  #: of a set of equilibria
    why: str
    message: str

    @staticmethod
    def _of(answer: Mapping[str, Any]) -> "Equilibrium":
        ends = (answer["from"], answer["to"]) if answer["kind"] == "equilibrium-set" else None
        return Equilibrium(answer["kind"], answer["t"], answer["state"], answer["mode"], answer["stable"],
                           answer["eigenvalues"], answer["residual"], answer["margin"], ends, answer["why"],
                           answer["message"])

    def __bool__(self) -> bool:
        return self.kind != "none"

    def __repr__(self) -> str:
        if not self:
            return f"<no Equilibrium: {self.message}>"
        neutral = len(self.eigenvalues) and abs(self.eigenvalues[0].real) <= 1e-9 * max(abs(self.eigenvalues))
        stability = "" if self.kind == "equilibrium-set" else ", neutral" if neutral else \
            ", stable" if self.stable else ", unstable"
        state = ", ".join(f"{v:.6g}" for v in self.state[:8])
        return f"<Equilibrium ({self.kind}) at {state}{stability}; eigenvalues {complex_words(self.eigenvalues)}>"


@dataclass(frozen=True)
class SpecialPoint:
    """A bifurcation on a branch; `model.follow(ranges, at=point)` begins there."""

    label: str                       #: "PD1"
    type: str                        #: "flip", "fold", "grazing-sliding", ...
    value: Any                       #: of what is followed; two where two parameters are
    state: Floats
    t: float
    period: float
    multipliers: Complexes           #: of equilibria their eigenvalues
    after: Optional[Complexes]       #: on the other side, where they jump
    crosses: Optional[tuple[str, ...]]  #: how Leine's set of them passes the unit circle: "+1", "-1", "complex"
    crosses_at: tuple[float, ...]    #: their places in it, from 0 on this side to 1 beyond
    persists: Optional[bool]         #: whether the branch passes there; False: it turns
    signature: tuple[str, ...]
    detail: str
    _near: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class BranchEnd:
    """Where a branch ends, and why."""

    direction: int
    why: str                         #: range, points, closed, homoclinic, signature or failed
    message: str
    value: float


class Branch:
    """A branch of orbits or equilibria, points in order along it; or the curve of a special point in two parameters.

    names        of what was followed; `values` [points], of two parameters [points, 2]
    states       [points, n], on the section; `lowest` and `highest` over a period likewise
    period       of each orbit
    stable       of each point
    multipliers  [points, m] complex, the largest first (NaN where a point has fewer); of equilibria their eigenvalues
    signature    the modes of each orbit
    labels       of special points, "" elsewhere
    special      the special points; `branch["PD1"]` is one of them
    ends         where it ends, and why
    branches     others that begin at its special points, with `all=True`
    """

    def __init__(self, model: "Model", names: Sequence[str], answer: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        self.model, self.names = model, tuple(names)
        self.found: bool = answer["found"]
        self.why: str = answer["why"]
        self.message: str = answer["message"]
        self.equilibria: bool = answer["equilibria"]
        values: Floats = answer["values"]
        self.values: Floats = values[:, 0] if values.shape[1] == 1 else values
        self.states: Floats = answer["states"]
        self.lowest: Floats = answer["lowest"]
        self.highest: Floats = answer["highest"]
        self.t: Floats = answer["t"]
        self.period: Floats = answer["period"]
        self.stable: NDArray[np.bool_] = answer["stable"]
        self.multipliers: Complexes = answer["spectrum"]
        self.signature: tuple[tuple[str, ...], ...] = tuple(answer["signature"])
        self.labels: tuple[str, ...] = tuple(answer["labels"])
        self.special: tuple[SpecialPoint, ...] = tuple(_special(s, start) for s in answer["special"])
        self.ends: tuple[BranchEnd, ...] = tuple(BranchEnd(*end) for end in answer["ends"])
        self.branches: tuple["Branch", ...] = ()

    __iter__ = None  # points are arrays

    def __getitem__(self, label: str) -> SpecialPoint:
        if not isinstance(label, str):
            raise TypeError(f"a special point is taken by its label, branch[\"PD1\"], not by {label!r}; "
                            "points are arrays: branch.values, branch.states")
        for point in self.special:
            if point.label == label:
                return point
        known = [p.label for p in self.special]
        near = _core.nearest(label, known)
        raise KeyError(f"there is no special point '{label}'; " +
                       (f"did you mean '{near}'?" if near else f"there are: {', '.join(known) or 'none'}"))

    def table(self) -> dict[str, Any]:
        """A column per quantity, an entry per point."""
        values = self.values if self.values.ndim == 2 else self.values[:, None]
        columns: dict[str, Any] = {name: values[:, k] for k, name in enumerate(self.names)}
        for i, name in enumerate(self.model.states):
            columns[name] = self.states[:, i]
            if not self.equilibria:
                columns[f"min({name})"], columns[f"max({name})"] = self.lowest[:, i], self.highest[:, i]
        if not self.equilibria:
            columns["period"] = self.period
        return {**columns, "stable": self.stable, "label": np.array(self.labels),
                "signature": np.array([" ".join(modes) for modes in self.signature])}

    def to_pandas(self) -> Any:
        """A DataFrame of `table()`; pandas must be there."""
        import pandas
        return pandas.DataFrame(self.table())

    def plot(self, measure: Optional[str] = None, ax: Any = None, **style: Any) -> Any:
        """The branch with matplotlib: stable solid, unstable dashed, special points labelled. The ordinate is a state,
        "max(x)", "min(x)" or "period" (the first state)."""
        from .plotting import plot_branch
        return plot_branch(self, measure, ax=ax, **style)

    def __bool__(self) -> bool:
        return self.found

    def __len__(self) -> int:
        return len(self.period)

    def __repr__(self) -> str:
        if not self.found:
            return f"<no Branch: {self.message}>"
        what = "equilibria" if self.equilibria else "orbits"
        special = ", ".join(f"{p.label} {p.type}" for p in self.special[:8]) or "nothing special"
        return f"<Branch of {len(self)} {what} in {', '.join(self.names)}: {special}>"


def _special(d: Mapping[str, Any], start: Mapping[str, Any]) -> SpecialPoint:
    value = d["values"][0] if len(d["values"]) == 1 else tuple(d["values"])
    near = {**start, **d["near"], "label": d["label"], "type": d["type"]}
    crosses = None if d["crosses"] is None else tuple(d["crosses"])
    return SpecialPoint(d["label"], d["type"], value, d["state"], d["t"], d["period"], d["spectrum"], d["after"], crosses,
                        tuple(d["crosses_at"]), d["persists"], tuple(d["signature"]), d["detail"], near)


def complex_words(values: Complexes) -> str:
    """"0.5 ± 0.2i, -0.1", at most eight of them."""
    words = []
    for i, z in enumerate(values[:8]):
        if i and z.imag and z == values[i - 1].conjugate():
            continue
        words.append(f"{z.real:.6g} ± {abs(z.imag):.6g}i" if z.imag else f"{z.real:.6g}")
    more = f", {len(values) - 8} more" if len(values) > 8 else ""
    return ", ".join(words) + more if words else "none"
