"""A nonsmooth system and the questions that can be asked of it."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Callable, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._errors import Interrupted, usage
from ._derivatives import Fit, Phase, Response
from ._many import Basins, Exponents, Sweep
from ._orbits import Branch, Equilibrium, Orbit, SpecialPoint
from ._options import (MOST_CELLS, MOST_VALUES, Value, box_of, cell_edges, check_word, data_table, finish_progress, formula, keywords, mapping, measure_texts, number, once,
                       path_text, per_state, plain_text, progress_function, range_values, sampling, sensitivity_names, several_starts, solve_dict,
                       sort_keywords, state_vector, takes_solve, texts, whole, window_text)
from ._trajectory import Floats, Section, Trajectory, end_of

Progress = Union[bool, Callable[[float], Any], None]


@dataclass(frozen=True)
class Switch:
    """A surface where the equations switch: sigma in Sgn(surface), solved in [-hold, hold] while the flow slides."""

    name: str
    surface: str
    hold: float
    interacts: tuple[str, ...]


@dataclass(frozen=True)
class Constraint:
    """0 <= multiplier, perpendicular to gap >= 0; with a restitution where the gap is one of positions."""

    name: str
    gap: str
    degree: int
    restitution: Union[float, str, None]


@dataclass(frozen=True)
class Named:
    """A jump or a section of the model, with what the model says about it."""

    name: str
    says: Mapping[str, Any]


class Model:
    """A nonsmooth system. Immutable; `with_` makes another.

    >>> friction = Model('''
    ...     y' = v
    ...     v' = -y + sin(omega*t) - F*sign(v)
    ... ''', F=0.4, omega="1/3", y=1, v=2)
    >>> friction.states
    ('y', 'v')

    equations    as in a model file
    values       of parameters and initial states by name: numbers or formulas ("1/3"); parameters may be NumPy vectors and
                 matrices, used as A[i,j]; the speed of a coordinate is {"x'": 0}
    sections     {"strobe": {"every": "2*pi/omega"}} or {"turn": {"on": "v", "direction": "rising"}}
    constraints  {"N": {"gap": "q", "restitution": 0.8}}
    jumps        {"reset": {"on": "v - 1", "direction": "rising", "set": {"v": "0"}}}
    mechanics    {"lagrangian": "m*x'^2/2 - k*x^2/2", "forces": {"x": "F"}, "dissipation": "c*x'^2/2"}

    Raises ModelError that points at the mistake.
    """

    def __init__(self, equations: str, *, name: str = "", sections: Optional[Mapping[str, Mapping[str, Any]]] = None,
                 constraints: Optional[Mapping[str, Mapping[str, Any]]] = None,
                 jumps: Optional[Mapping[str, Mapping[str, Any]]] = None, mechanics: Optional[Mapping[str, Any]] = None,
                 values: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        if not isinstance(equations, str):
            raise usage(f"equations={equations!r} is no text", "write the equations as in a model file: \"x' = -x\"")
        plain_text(equations, "equations")
        if not isinstance(name, str):
            raise usage(f"name={name!r} is no text")
        plain_text(name, "name")
        given = once(more, values, "Model")
        energies = " ".join(str(v) for v in (mechanics or {}).values() if isinstance(v, str))
        states = set(re.findall(r"([^\W\d]\w*)\s*(?:\[[^\]]*\])?\s*'", equations + " " + energies))
        def is_state(key: str) -> bool:
            return re.sub(r"[\[\'].*", "", key) in states
        parameters: dict[str, Any] = texts({k: v for k, v in given.items() if not is_state(k) and not _is_array(v)})
        parameters |= {k: _array_texts(v, k) for k, v in given.items() if not is_state(k) and _is_array(v)}
        initial = texts({k: v for k, v in given.items() if is_state(k)})
        self._set(_core.build(name or "model", _dedented(equations), parameters, initial, _tables("constraint", constraints),
                              _tables("jump", jumps), _tables("section", sections), _mechanics(mechanics)))

    @classmethod
    def _of(cls, system: _core.System) -> "Model":
        model = cls.__new__(cls)
        model._set(system)
        return model

    def _set(self, system: _core.System) -> None:
        self._system = system
        self._facts: dict[str, Any] = system.facts()
        self._names = (*self._facts["parameters"], *self._facts["states"])

    # ---- where models come from --------------------------------------------------------------------------------------

    @staticmethod
    def from_file(path: Union[str, "os.PathLike[str]"]) -> "Model":
        """A model file, or the run.toml of a result."""
        return Model._of(_core.System.from_file(path_text(path)))

    @staticmethod
    def from_text(text: str, name: str = "model") -> "Model":
        """The text of a model file; `name` stands for the file in messages."""
        for what, given in (("text", text), ("name", name)):
            if not isinstance(given, str):
                raise usage(f"{what}={given!r} is no text")
            plain_text(given, what)
        return Model._of(_core.System.from_text(text, name))

    @staticmethod
    def from_matrices(A: ArrayLike, B: Optional[ArrayLike] = None, C: Optional[ArrayLike] = None,
                      D: Optional[ArrayLike] = None, R: Optional[ArrayLike] = None, F: Optional[ArrayLike] = None,
                      x0: Optional[ArrayLike] = None, name: str = "linear complementarity system") -> "Model":
        """x' = A x + B l + R with 0 <= l perp y = C x + D l + F >= 0; without C, x' = A x + R. States x[i],
        multipliers l[k]."""
        given = {key: np.atleast_2d(np.asarray(v, dtype=float)) if key in "ABCD" else np.ravel(np.asarray(v, dtype=float))
                 for key, v in (("A", A), ("B", B), ("C", C), ("D", D), ("R", R), ("F", F)) if v is not None}
        n = given["A"].shape[0]
        if ("B" in given) != ("C" in given):
            raise usage("from_matrices() has one of B and C", "multipliers act by B and are found by C (and D, F)")
        m = given["C"].shape[0] if "C" in given else 0
        wanted = {"A": (n, n), "B": (n, m), "C": (m, n), "D": (m, m), "R": (n,), "F": (m,)}
        for key, value in given.items():
            if value.shape != wanted[key]:
                raise usage(f"from_matrices(): {key} is {' x '.join(map(str, value.shape))}",
                            f"it must be {' x '.join(map(str, wanted[key]))}")
        terms = [f"sum(A[i,j]*x[j] for j = 1..{n})"]
        terms += [f"sum(B[i,k]*l[k] for k = 1..{m})"] * ("B" in given) + ["R[i]"] * ("R" in given)
        gap = [f"sum(C[k,j]*x[j] for j = 1..{n})"]
        gap += [f"sum(D[k,p]*l[p] for p = 1..{m})"] * ("D" in given) + ["F[k]"] * ("F" in given)
        start = np.zeros(n) if x0 is None else np.ravel(np.asarray(x0, dtype=float))
        if start.shape != (n,):
            raise usage(f"from_matrices(): x0 has {start.size} numbers", f"it must have {n}")
        return Model(f"x[i]' = {' + '.join(terms)}  for i = 1..{n}", name=name,
                     constraints={"l": {"gap": " + ".join(gap), "for": f"k = 1..{m}"}} if m else None,
                     values={**given, **{f"x[{i + 1}]": float(v) for i, v in enumerate(start)}})

    @staticmethod
    def example(name: str) -> "Model":
        """One of the gallery; `saltus.examples()` lists it."""
        if not isinstance(name, str):
            raise usage(f"the gallery has no model {name!r}", "saltus.examples() lists them")
        plain_text(name, "name")
        return Model._of(_core.System.example(name))

    def with_(self, values: Optional[Mapping[str, Value]] = None, **more: Value) -> "Model":
        """The same with other parameters or initial values."""
        return self._with(once(more, values, "with_"), "with_")

    def _with(self, values: Mapping[str, Value], call: str) -> "Model":
        if not values:
            return self
        values = _entries(values, self._names)
        for name in values:
            if name not in self._names:
                near = _core.nearest(name, list(self._names))
                raise usage(f"the model has no parameter or state '{name}'",
                            f"did you mean '{near}'?" if near else f"it has {', '.join(self._names)}")
        states = self._facts["states"]
        return Model._of(self._system.with_values(texts({k: v for k, v in values.items() if k not in states}),
                                                  texts({k: v for k, v in values.items() if k in states})))

    # ---- what it is --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._facts["name"])

    @property
    def ref(self) -> str:
        """Where it is from."""
        return str(self._facts["ref"])

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states, in order."""
        return tuple(self._facts["states"])

    @property
    def parameters(self) -> Mapping[str, float]:
        """Parameters by name, in order."""
        return MappingProxyType(self._facts["parameters"])

    @property
    def initial(self) -> Mapping[str, float]:
        """Initial values by name of the state."""
        return MappingProxyType(self._facts["initial"])

    @property
    def period(self) -> Optional[float]:
        """Of the explicit time dependence; None where there is none, or none is seen."""
        return None if self._facts["period"] is None else float(self._facts["period"])

    @property
    def _page(self) -> dict[str, Any]:
        page: dict[str, Any] = json.loads(self._facts["json"])
        return page

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The surfaces where the equations switch."""
        return tuple(Switch(s["name"], s["surface"], s["hold"], tuple(s["interacts"])) for s in self._page["switches"])

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The complementarity conditions: contacts, diodes."""
        return tuple(Constraint(c["name"], c["gap"], c["degree"], c.get("restitution"))
                     for c in self._page["constraints"])

    @property
    def jumps(self) -> tuple[Named, ...]:
        """The jumps of the state."""
        return tuple(Named(j["name"], MappingProxyType(j)) for j in self._page["jumps"])

    @property
    def sections(self) -> tuple[Named, ...]:
        """The Poincaré and stroboscopic sections."""
        return tuple(Named(s["name"], MappingProxyType(s)) for s in self._page["sections"])

    @cached_property
    def _event_names(self) -> tuple[str, ...]:
        """Of all that events may be on."""
        page = self._page
        return tuple(item["name"] for kind in ("switches", "constraints", "jumps", "sections") for item in page[kind])

    def text(self) -> str:
        """A model file that reads to the same model."""
        return self._system.text()

    def latex(self) -> str:
        """The equations as LaTeX, as `saltus check --latex` prints them."""
        return self._system.latex()

    def describe(self) -> str:
        """What saltus understood, as `saltus check` prints it."""
        return self._system.describe()

    def rates(self, x: ArrayLike, t: float = 0, values: Optional[Mapping[str, Value]] = None, **more: Value) -> Floats:
        """The rates of the states at a state [n], or at many [..., n], shaped alike: each in the mode in which a run
        would start there at time t, sliding included; NaN where none can. Other parameters by name."""
        model = self._with({**more, **(values or {})}, "rates")
        points = np.asarray(x, dtype=float)
        if points.ndim == 0 or points.shape[-1] != len(self.states):
            raise usage(f"x has the shape {points.shape}, the model {len(self.states)} states",
                        f"give values of {', '.join(self.states)}, in this order")
        return _core.rates(model._system, points.reshape(-1, points.shape[-1]), float(t)).reshape(points.shape)

    # ---- questions ---------------------------------------------------------------------------------------------------

    @takes_solve("run")
    def run(self, until: Optional[Value] = None, *, start: Any = None, dense: Optional[bool] = None,
            sample: Any = None, max_events: Optional[int] = None,
            measure: Union[str, Sequence[str], None] = None, window: Union[str, tuple[Value, Value], None] = None,
            sensitivity: Union[bool, Sequence[str], None] = None, progress: Progress = None, stop: Any = None,
            values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None, **more: Any) -> Trajectory:
        """One trajectory.

        until        end time, a number or a formula in parameters (the model's)
        start        a state: mapping, sequence, or a Trajectory to go on from its end, time included (the model's)
        dense        keep the dense output, for `path(t)` (True)
        sample       rows: "smooth", "steps", an interval, or an array of times ("smooth")
        max_events   the run ends there
        measure      "mean(P)", or a list: mean, rms, pp, min, max of a name or formula, above(x, 0.5); see `.measures`
        window       (0.8, 1) or "0.8:1": rows, events and measures of this stretch of time alone
        sensitivity  derivatives of the end: True, or the names of parameters
        progress     True: a bar on stderr; or a function of how much is done (0 to 1) that may return False to stop
        stop         a threading.Event that stops the run
        more         parameters and initial states by name. One that is also an option (theta, dt, ...) is ambiguous:
                     write run(values={"theta": 0.1}) or run(options={"theta": 0.5})

        Never raises for what the system does: see `.end`.
        """
        named = keywords(locals(), Model.run)
        given, settings = sort_keywords(self._names, named, values, options, more, "run")
        model = self._with(settings, "run")
        if isinstance(given.get("start"), Trajectory):
            past = given["start"]
            given["start"] = past.end.state
            given.setdefault("from_", past.end.t)
        names = sensitivity_names(given.get("sensitivity"))
        start_state = state_vector(given.get("start"), model.states, model.initial)
        answer = self._wait(given, lambda watch, halt: _core.run(
            model._system, solve_dict(given), start_state, sampling(given.get("sample")), True, given.get("dense", True),
            given.get("max_events"), names, measure_texts(given.get("measure")), window_text(given.get("window")), watch, halt))
        kept = {k: v for k, v in given.items() if k not in ("progress", "stop")}
        path = Trajectory(model, answer, kept)
        if answer["interrupted"]:
            raise Interrupted(path)
        return path

    @takes_solve("section")
    def section(self, count: int = 1000, *, section: Optional[str] = None, skip: int = 0,
                level: Optional[Value] = None, start: Any = None, progress: Progress = None, stop: Any = None,
                values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None, **more: Any) -> Section:
        """Points of a Poincaré or stroboscopic map.

        count    points wanted
        section  its name (the only one)
        skip     points left out before them
        level    of a section `on` a formula: met where that has this value (0)
        """
        named = keywords(locals(), Model.section, "count", "skip")
        given, settings = sort_keywords(self._names, named, values, options, more, "section")
        model = self._with(settings, "section")
        start_state = state_vector(given.get("start"), model.states, model.initial)
        answer = self._wait(given, lambda watch, halt: _core.section(
            model._system, solve_dict(given), start_state, given.get("section", ""), whole(count, "count"), whole(skip, "skip"),
            formula(given.get("level", 0), "level"), watch, halt))
        points = Section(model, answer, int(skip))
        if answer["interrupted"]:
            raise Interrupted(points)
        return points

    @takes_solve("sweep")
    def sweep(self, vary: Mapping[str, Any], *, count: Optional[int] = None, skip: Optional[int] = None,
              settle: Optional[int] = None, longest: Optional[int] = None, start: Any = None,
              starts: Optional[int] = None, box: Optional[Mapping[str, tuple[float, float]]] = None,
              continue_: Optional[str] = None, exponent: Optional[bool] = None, near: Any = None,
              measure: Union[str, Sequence[str], None] = None,
              section: Optional[str] = None, seed: Optional[int] = None, progress: Progress = None, stop: Any = None,
              values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None, **more: Any) -> Sweep:
        """Attractors against one parameter, or periods against two.

        vary       {"omega": np.linspace(.15, 2, 400)} or {"1/omega": (0.3, 7, 200)}, a formula of one parameter and
                   from, to, how many; two entries: a map of periods
        count      points recorded per run (100)
        skip       points left out before them (400; 0 with settle)
        settle     go on until a period is found, but for so many points at most
        longest    period looked for (64)
        start      a state, or a list of them: a run from each (the model's)
        starts     random starts per value, in `box` {"y": (-2, 2)}, by `seed`
        continue_  start where the run of the value before ended: "up", "down", "both"
        measure    "mean(P)", or a list: of each run, over its period; see `.measures`
        exponent   the largest Lyapunov exponent of each run as well
        near       how near points of one phase are: a number, or {"v": 1e-4} (a millionth)
        """
        named = keywords(locals(), Model.sweep, "vary")
        given, settings = sort_keywords(self._names, named, values, options, more, "sweep")
        model = self._with(settings, "sweep")
        axes = [(name, range_values(name, wanted)) for name, wanted in mapping(vary, "vary").items()]
        if not axes:
            raise usage("no parameter is varied", "name one and its values: {\"omega\": (0.5, 3, 400)}")
        how: dict[str, Any] = {k: given[k] for k in ("count", "skip", "settle", "longest", "exponent", "section", "seed")
                               if k in given}
        if "measure" in given:
            how["measures"] = measure_texts(given["measure"])
        if "continue_" in given:
            how["direction"] = check_word(given["continue_"], ("no", "up", "down", "both"), "direction for continue_")
        if "near" in given:
            how["tolerance"] = per_state(given["near"], model.states, "near")
        if "box" in given or "starts" in given:
            if "start" in given:
                raise usage("start names states and box random ones", "choose one of both")
            how["box"] = box_of(given.get("box"), model.states)
            how["random_starts"] = int(given.get("starts", 1))
        elif "start" in given:
            how["starts"] = several_starts(given["start"], model.states, model.initial)
        answer = self._wait(given, lambda watch, halt: _core.sweep(model._system, solve_dict(given), axes, how, watch, halt))
        result = Sweep(model, [name for name, _ in axes], answer)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("basins")
    def basins(self, axes: Mapping[str, Any], *, method: Optional[str] = None, join: Optional[str] = None,
               refine: Optional[bool] = None, section: Optional[str] = None, period: Optional[int] = None,
               random: Optional[int] = None, seed: Optional[int] = None, points: Optional[int] = None,
               longest: Optional[int] = None, near: Any = None, progress: Progress = None, stop: Any = None,
               values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None, **more: Any) -> Basins:
        """Which initial states go to which attractor.

        axes       {"u": (0, 5, 400), "v": (-5, 5, 400)}: from, to, cells; or the edges of the cells as an array
        method     "cells": map each cell once; "direct": run each until it settles ("cells")
        join       which cycles of cells are one attractor: "nearest", "run", "touch", "touch:2", "none" ("nearest")
        refine     with "direct": run only cells near boundaries, fill in the others
        period     the map takes so many points of the section (1)
        random     so many random points instead of a grid, by `seed`
        points     of a direct run at most (5000); `longest` period looked for (64)
        near       how near points of one phase are: a number, or {"v": 1e-4}
        """
        named = keywords(locals(), Model.basins, "axes")
        given, settings = sort_keywords(self._names, named, values, options, more, "basins")
        model = self._with(settings, "basins")
        edges = {name: cell_edges(name, wanted, model.states, "random" in given)
                 for name, wanted in mapping(axes, "axes").items()}
        if not edges:
            raise usage("no state is varied", "name two states and their intervals: {\"y\": (-2, 2, 400), ...}")
        cells = given.get("random", math.prod(len(e) - 1 for e in edges.values()))
        if cells > MOST_CELLS:
            raise usage(f"these are {cells} cells", f"at most {MOST_CELLS} can be computed")
        how: dict[str, Any] = {k: given[k] for k in ("refine", "section", "period", "random", "seed", "points", "longest")
                               if k in given}
        how["method"] = check_word(given.get("method", "cells"), ("cells", "direct"), "method")
        word, _, distance = str(given.get("join", "nearest")).partition(":")
        how["join"] = check_word(word, ("nearest", "run", "touch", "none"), "join")
        if distance:
            how["join_distance"] = _distance(distance)
        if given.get("refine") and how["method"] != "direct":
            raise usage("refine needs direct runs: cell mapping needs the image of every cell", "add method=\"direct\"")
        if "near" in given:
            how["tolerance"] = per_state(given["near"], model.states, "near")
        core_axes = [(model.states.index(name), e) for name, e in edges.items()]
        answer = self._wait(given,
                            lambda watch, halt: _core.basins(model._system, solve_dict(given), core_axes, how, watch, halt))
        result = Basins(model, edges, answer)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("exponents")
    def exponents(self, until: Optional[Value] = None, *, start: Any = None, progress: Progress = None,
                  stop: Any = None, values: Optional[Mapping[str, Value]] = None,
                  options: Optional[Mapping[str, Any]] = None, **more: Any) -> Exponents:
        """All Lyapunov exponents of one run, exactly differentiated through every event.

        until   how long; without it until the errors are small. The first tenth is transient.
        """
        named = keywords(locals(), Model.exponents)
        given, settings = sort_keywords(self._names, named, values, options, more, "exponents")
        model = self._with(settings, "exponents")
        start_state = state_vector(given.get("start"), model.states, model.initial)
        solve = {"engine": "event", **solve_dict(given)}
        answer = self._wait(given, lambda watch, halt: _core.exponents(model._system, solve, start_state, watch, halt))
        result = Exponents(answer["exponents"], answer["error"], answer["time"], answer["times"],
                           tuple(answer["running"]), end_of(answer["end"]), tuple(answer["messages"]))
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("orbit", without=("threads",))
    def orbit(self, *, section: Optional[str] = None, guess: Optional[bool] = None, period: Optional[int] = None,
              time: Optional[Value] = None, backward: Optional[bool] = None,
              modulo: Optional[Mapping[str, Value]] = None, start: Any = None, progress: Progress = None,
              stop: Any = None, values: Optional[Mapping[str, Value]] = None,
              options: Optional[Mapping[str, Any]] = None, **more: Any) -> Orbit:
        """A periodic orbit: the one on which the run from the initial values settles, or one near a guess.

        section   which section, if there are several
        guess     the initial values are near the orbit: no run first, so unstable ones are found as well
        period    it closes after so many returns to the section (what the run shows; 1 with a guess)
        time      or, with a guess, after about this time
        backward  settle and close backward in time: unstable orbits
        modulo    {"th": "2*pi"}: a state that may grow by multiples of a number
        start     a state (the model's)

        Never raises where there is none: see `.found` and `.message`.
        """
        named = keywords(locals(), Model.orbit)
        given, settings = sort_keywords(self._names, named, values, options, more, "orbit")
        model = self._with(settings, "orbit")
        start_state = state_vector(given.get("start"), model.states, model.initial)
        answer = self._wait(given, lambda watch, halt: _core.orbit(model._system, _searched(given), start_state,
                                                                   _closing(given), watch, halt))
        result = Orbit(model, answer)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("orbit")
    def orbits(self, starts: int, box: Mapping[str, tuple[float, float]], *, seed: Optional[int] = None,
               section: Optional[str] = None, guess: Optional[bool] = None, period: Optional[int] = None,
               time: Optional[Value] = None, backward: Optional[bool] = None,
               modulo: Optional[Mapping[str, Value]] = None, progress: Progress = None, stop: Any = None,
               values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None, **more: Any) -> list[Orbit]:
        """The distinct orbits, stable or not, near random starts in a box, by their period.

        starts  how many, in `box` {"y": (-2, 2), ...}, by `seed`
        The other options are those of `orbit`.
        """
        named = keywords(locals(), Model.orbits, "starts", "box")
        given, settings = sort_keywords(self._names, named, values, options, more, "orbits")
        model = self._with(settings, "orbits")
        where = box_of(mapping(box, "box"), model.states)
        count = whole(starts, "starts", 1)
        if count > MOST_VALUES:
            raise usage(f"starts={starts}: too many", f"at most {MOST_VALUES}")
        answer = self._wait(given, lambda watch, halt: _core.orbits(
            model._system, _searched(given), None, _closing(given), count, where, int(given.get("seed", 1)), watch,
            halt))
        result = [Orbit(model, one) for one in answer["orbits"]]
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("orbit", without=("threads",))
    def equilibrium(self, *, start: Any = None, progress: Progress = None, stop: Any = None,
                    values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None,
                    **more: Any) -> Equilibrium:
        """A point where the system rests: in the mode of the initial values, in neighbouring and sliding ones, or at the
        end of a run. Pseudo-equilibria, contacts at rest and sets of equilibria are told as such.

        start   a state near it (the model's)
        """
        named = keywords(locals(), Model.equilibrium)
        given, settings = sort_keywords(self._names, named, values, options, more, "equilibrium")
        model = self._with(settings, "equilibrium")
        start_state = state_vector(given.get("start"), model.states, model.initial)
        answer = self._wait(given, lambda watch, halt: _core.equilibrium(model._system, _searched(given), start_state,
                                                                         watch, halt))
        result = Equilibrium._of(answer)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("phase", without=("threads",))
    def phase(self, *, couple: Union[str, Sequence[str], None] = None, per_cycle: Optional[bool] = None,
              section: Optional[str] = None, guess: Optional[bool] = None, period: Optional[int] = None,
              time: Optional[Value] = None, backward: Optional[bool] = None,
              modulo: Optional[Mapping[str, Value]] = None, start: Any = None, progress: Progress = None,
              stop: Any = None, values: Optional[Mapping[str, Value]] = None,
              options: Optional[Mapping[str, Any]] = None, **more: Any) -> Phase:
        """How kicks move the phase of an oscillation, through every event, and how its period moves with parameters.

        couple     "v += g*(other.v - v)", or several: two equal copies, their interaction and locked phases
        per_cycle  phases from 0 to 2 pi instead of times

        Which orbit: as in `orbit`. Never raises where there is none: see `.found` and `.message`.
        """
        named = keywords(locals(), Model.phase)
        given, settings = sort_keywords(self._names, named, values, options, more, "phase")
        model = self._with(settings, "phase")
        start_state = state_vector(given.get("start"), model.states, model.initial)
        terms = [given["couple"]] if isinstance(given.get("couple"), str) else list(given.get("couple", ()))
        answer = self._wait(given, lambda watch, halt: _core.phase(
            model._system, _searched(given), start_state, _closing(given), terms, bool(given.get("per_cycle", False)),
            watch, halt))
        result = Phase._of(answer)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("response", without=("threads",))
    def response(self, inputs: Union[str, Sequence[str], None] = None, outputs: Union[str, Sequence[str], None] = None,
                 *, loop: Optional[str] = None, lowest: Optional[Value] = None, highest: Optional[Value] = None,
                 points: Optional[int] = None, sideband: Optional[int] = None, equilibrium: Optional[bool] = None,
                 section: Optional[str] = None, guess: Optional[bool] = None, period: Optional[int] = None,
                 time: Optional[Value] = None, modulo: Optional[Mapping[str, Value]] = None, start: Any = None,
                 progress: Progress = None, stop: Any = None, values: Optional[Mapping[str, Value]] = None,
                 options: Optional[Mapping[str, Any]] = None, **more: Any) -> Response:
        """Transfer functions about a switched steady state or an equilibrium, exactly through every event.

        inputs, outputs  a name or several: parameters (or named quantities, to which a signal is added); states,
                         named quantities, multipliers or formulas of them
        loop             instead of both: the loop gain where the loop is opened at this named quantity
        lowest, highest  frequencies in cycles per unit of time; `points` of them (200), spaced logarithmically
        sideband         harmonic of the orbit about which the outputs are looked at (0)
        equilibrium      about a point where the model rests, not an orbit

        Which orbit: as in `orbit`. Never raises where there is none: see `.found` and `.message`.
        """
        named = keywords(locals(), Model.response, "inputs", "outputs")
        given, settings = sort_keywords(self._names, named, values, options, more, "response")
        model = self._with(settings, "response")
        start_state = state_vector(given.get("start"), model.states, model.initial)
        what: dict[str, Any] = {name: given[name] for name in ("loop", "points", "sideband", "equilibrium")
                                if name in given}
        for name, some in (("inputs", inputs), ("outputs", outputs)):
            what[name] = [some] if isinstance(some, str) else list(some or ())
        for name in ("lowest", "highest"):
            if name in given:
                what[name] = formula(given[name], name)
        answer = self._wait(given, lambda watch, halt: _core.response(
            model._system, _searched(given), start_state, _closing(given), what, watch, halt))
        result = Response._of(answer)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("fit", without=("threads",))
    def fit(self, free: Union[Sequence[str], Mapping[str, Any]], data: Optional[Mapping[str, Any]] = None, *,
            log: Optional[Sequence[str]] = None, begin: Optional[Mapping[str, float]] = None,
            starts: Optional[int] = None, seed: Optional[int] = None, profile: Optional[bool] = None,
            robust: Optional[bool] = None, progress: Progress = None, stop: Any = None,
            values: Optional[Mapping[str, Value]] = None, options: Optional[Mapping[str, Any]] = None,
            **more: Any) -> Fit:
        """Parameters and initial values from data, through every event.

        free     ["F", "y(0)"], or {"F": None, "omega": (0.1, 3)} with bounds (None: none)
        data     {"test1": {"t": times, "y": values, "sigma": {"y": 0.01}, "with": {"omega": 0.5}},
                  "stops": {"t": times, "events": ("v", "slide")}}; without it the tables [data.NAME] of the model's file
        log      names of those varied by their logarithms
        begin    {"F": 0.2}: where the search begins, if not at the model's value
        starts   random starts within the bounds as well, by `seed`: every minimum found in `.minima`
        profile  the least sum of squares over each value, in `.profiles`
        robust   data that lie far off count less
        """
        named = keywords(locals(), Model.fit, "free", "data")
        given, settings = sort_keywords(self._names, named, values, options, more, "fit")
        model = self._with(settings, "fit")
        names = {name: None for name in free} if not isinstance(free, Mapping) else free
        wanted = []
        for name, bounds in names.items():
            one: dict[str, Any] = {"name": plain_text(name, "free"), "log": name in given.get("log", ())}
            if bounds is not None:
                low, high = bounds
                one.update({} if low is None else {"low": number(low, name)})
                one.update({} if high is None else {"high": number(high, name)})
            if name in given.get("begin", {}):
                one["start"] = number(given["begin"][name], name)
            wanted.append(one)
        tables = [data_table(name, table) for name, table in (data or {}).items()]
        how = {name: given[name] for name in ("starts", "seed", "profile", "robust") if name in given}
        solve = {"engine": "event", **solve_dict(given)}
        answer = self._wait(given, lambda watch, halt: _core.fit(model._system, solve, wanted, tables, how, watch, halt))
        found = {name.removesuffix("(0)"): v for name, v in answer["values"].items() if "@" not in name}
        result = Fit._of(answer, model.with_(found) if found else model)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @takes_solve("follow")
    def follow(self, ranges: Mapping[str, tuple[Value, Value]], *, at: Optional[SpecialPoint] = None,
               equilibrium: Optional[bool] = None, all: Optional[bool] = None, points: Optional[int] = None,
               step: Optional[float] = None, longest_time: Optional[Value] = None, section: Optional[str] = None,
               guess: Optional[bool] = None, period: Optional[int] = None, time: Optional[Value] = None,
               backward: Optional[bool] = None, modulo: Optional[Mapping[str, Value]] = None, start: Any = None,
               progress: Progress = None, stop: Any = None, values: Optional[Mapping[str, Value]] = None,
               options: Optional[Mapping[str, Any]] = None, **more: Any) -> Branch:
        """The branch of an orbit or equilibrium in a parameter, and its bifurcations, smooth and discontinuous.

        ranges        {"omega": (0.5, 3)}: a parameter, or a formula of one, and where it goes; it starts at the present
                      value. Two entries, with `at`: the curve of that special point in two parameters
        at            a special point of a branch, to begin another branch there
        equilibrium   equilibria instead of orbits
        all           every branch that begins at a special point as well, in `.branches`
        points        at most, each way (2000)
        step          longest step, as a share of the range (0.02)
        longest_time  a longer period counts as homoclinic (100 times the first)

        The other options are those of `orbit`. Never raises where there is nothing to follow: see `.found`, `.message`.
        """
        named = keywords(locals(), Model.follow, "ranges")
        given, settings = sort_keywords(self._names, named, values, options, more, "follow")
        model = self._with(settings, "follow")
        ends = [(name, *_range_ends(name, wanted)) for name, wanted in mapping(ranges, "ranges").items()]
        how = _closing(given)
        for name in ("equilibrium", "all", "points", "step"):
            if name in given:
                how[name] = given[name]
        if "longest_time" in given:
            how["longest_time"] = formula(given["longest_time"], "longest_time")
        if "at" in given:
            if not isinstance(given["at"], SpecialPoint):
                raise usage("at is no special point", "take one of a branch: at=branch[\"PD1\"]")
            near = given["at"]._near
            how = {**near["how"], **how, "at": near}
        start_state = state_vector(given.get("start"), model.states, model.initial)
        answer = self._wait(given, lambda watch, halt: _core.follow(model._system, _searched(given), start_state, ends,
                                                                    how, watch, halt))
        kept = {name: how[name] for name in ("section", "modulo", "backward", "equilibrium") if name in how}
        begun = {"followed": ends, "how": kept}
        result, *others = [Branch(model, list(ranges), one, begun) for one in answer["branches"]]
        result.branches = tuple(others)
        if answer["interrupted"]:
            raise Interrupted(result)
        return result

    @staticmethod
    def _wait(given: Mapping[str, Any], ask: Callable[[Any, Any], dict[str, Any]]) -> dict[str, Any]:
        watch = progress_function(given.get("progress"))
        try:
            return ask(watch, given.get("stop"))
        finally:
            finish_progress(watch)

    # ---- what a notebook shows ---------------------------------------------------------------------------------------

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ._display import model_bundle
        return model_bundle(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{p}={f}" for p, f in zip(self.parameters, self._facts["formulas"]))
        counts = [(len(self.switches), "switch", "es"), (len(self.constraints), "constraint", "s"),
                  (len(self.jumps), "jump", "s"), (len(self.sections), "section", "s")]
        parts = ", ".join(f"{n} {word}{plural if n > 1 else ''}" for n, word, plural in counts if n)
        return f"<Model '{self.name}': {', '.join(self.states)}; {values or 'no parameters'}" + \
            (f"; {parts}>" if parts else ">")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.text() == other.text()

    def __hash__(self) -> int:
        return hash(self.text())

    def __reduce__(self) -> tuple[Any, ...]:
        return Model.from_text, (self.text(), self.name)


def _searched(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a search, which is the event-driven engine's."""
    return {"engine": "event", **solve_dict(given)}


def _closing(given: Mapping[str, Any]) -> dict[str, Any]:
    """How an orbit is found, as the core takes it."""
    how: dict[str, Any] = {k: given[k] for k in ("section", "guess", "period", "backward") if k in given}
    if "time" in given:
        how["time"] = formula(given["time"], "time")
    if "modulo" in given:
        how["modulo"] = texts(given["modulo"])
    return how


def _range_ends(name: str, wanted: Any) -> tuple[str, str]:
    if not isinstance(wanted, Sequence) or isinstance(wanted, str) or len(wanted) != 2:
        raise usage(f"{name}: this is no range", f"write its two ends: {{\"{name}\": (0.5, 3)}}")
    return formula(wanted[0], name), formula(wanted[1], name)


def _distance(text: str) -> float:
    try:
        distance = float(text)
    except ValueError:
        distance = -1.0
    if not distance >= 0:
        raise usage(f"join=\"touch:{text}\": no such distance", "write how many cells apart: \"touch:2\"")
    return distance


# What a table of the model may say, which of it exactly one of must be there, and what must be there.
_KEYS = {"constraint": ("gap", "equals", "restitution", "restitution_tangential", "friction", "slip", "for"),
         "jump": ("on", "every", "phase", "when", "direction", "set", "for"),
         "section": ("every", "on", "direction", "stop", "for")}
_ONE_OF = {"constraint": ("gap", "equals"), "jump": ("on", "every"), "section": ("on", "every")}


def _mechanics(table: Optional[Mapping[str, Any]]) -> dict[str, Any]:
    given = mapping(table or {}, "mechanics")
    for key in given:
        if key not in ("lagrangian", "forces", "dissipation"):
            raise usage(f"mechanics has no '{key}'", "it may say lagrangian, forces, dissipation")
    if given and "lagrangian" not in given:
        raise usage("mechanics has no lagrangian", "kinetic less potential energy: \"m*x'^2/2 - k*x^2/2\"")
    return {key: texts(mapping(v, "forces")) if key == "forces" else formula(v, key) for key, v in given.items()}


def _tables(kind: str, tables: Optional[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Texts where the core wants formulas, and nothing that it does not know."""
    out: dict[str, dict[str, Any]] = {}
    for name, table in mapping(tables or {}, f"{kind}s").items():
        where = f"{kind} '{name}'"
        given = mapping(table, where)
        for key in given:
            if key not in _KEYS[kind]:
                near = _core.nearest(str(key), list(_KEYS[kind]))
                raise usage(f"{where} has no '{key}'", f"did you mean '{near}'?" if near else
                            f"it may say {', '.join(_KEYS[kind])}")
        if sum(key in given for key in _ONE_OF[kind]) != 1:
            raise usage(f"{where} needs {' or '.join(_ONE_OF[kind])}", f"known: {', '.join(_KEYS[kind])}")
        if kind == "jump" and not given.get("set"):
            raise usage(f"{where} sets nothing", "say what it sets: {\"set\": {\"v\": 0}}")
        out[str(name)] = {key: _table_value(where, key, v) for key, v in given.items()}
    return out


def _is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(np.asarray(value, dtype=object)) > 0


def _array_texts(value: Any, name: str) -> list[Any]:
    """A vector or a matrix: numbers, or formulas as text."""
    array = np.asarray(value, dtype=object)
    if array.ndim not in (1, 2) or array.size == 0 or any(isinstance(v, (list, tuple)) for v in array.flat):
        raise usage(f"{name} is neither a vector nor a matrix", "rows are equally long: [[0, 1], [-1, -0.1]]")
    def text(v: Any) -> str:
        return "0" if not isinstance(v, str) and v == 0 else formula(v, name)
    return [[text(v) for v in row] for row in array] if array.ndim == 2 else [text(v) for v in array]


def _entries(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Arrays taken apart into the parameters A[1,2] that the model has; an entry that it does not have must be 0."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if not _is_array(value):
            out[name] = value
            continue
        array = np.asarray(value, dtype=object)
        for place in np.ndindex(array.shape):
            entry = f"{name}[{','.join(str(i + 1) for i in place)}]"
            if entry in names:
                out[entry] = array[place]
            elif array[place] != 0:
                raise usage(f"the model has no parameter '{entry}'",
                            "an entry that was 0 is no term of the equations: make the model anew")
    return out


def _table_value(where: str, key: str, value: Any) -> Any:
    if key == "slip":
        return [formula(v, f"{where}: slip") for v in ([value] if isinstance(value, str) else value)]
    if key == "set":
        return texts(mapping(value, f"{where}: set"))
    if key == "stop":
        if not isinstance(value, bool):
            raise usage(f"{where}: stop={value!r} is neither True nor False")
        return value
    return formula(value, f"{where}: {key}")


def _dedented(equations: str) -> str:
    """Without the blank lines around and the common indent: so that places in messages are those of the text seen."""
    lines = equations.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)
