"""What derivatives tell: phase responses, responses to small signals, fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ._model import Model

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class PhaseJump:
    """An event at which Z or the state jumps."""

    t: float
    z_before: Floats
    z_after: Floats
    state_before: Floats
    state_after: Floats


@dataclass(frozen=True)
class Phase:
    """Phase response of an oscillation; `if phase:` asks whether there is one, `phase.message` says why not.

    period               of the orbit; `cycle` is that, or 2 pi with per_cycle
    t, z, states         phases along the orbit, Z there [k, states], the states [k, states]
    jumps                events at which Z or the state jumps
    period_by_parameter  derivative of the period by each parameter
    events               (t, kind, on, {parameter: derivative of its time after the first event})
    interaction          H at equal steps of the cycle, with a coupling; `locked`: (phase, stable)
    error                by which Z fails to close, relative
    """

    found: bool
    why: str
    message: str
    period: float
    cycle: float
    t: Floats
    z: Floats
    states: Floats
    jumps: tuple[PhaseJump, ...]
    period_by_parameter: Mapping[str, float]
    events: tuple[tuple[float, str, list[str], Mapping[str, float]], ...]
    interaction: Optional[Floats]
    locked: tuple[tuple[float, bool], ...]
    error: float
    messages: tuple[str, ...]

    @classmethod
    def _of(cls, d: Mapping[str, Any]) -> "Phase":
        return cls(d["found"], d["why"], d["message"], d["period"], d["cycle"], d["t"], d["z"], d["states"],
                   tuple(PhaseJump(*j) for j in d["jumps"]), d["period_by_parameter"], tuple(d["events"]),
                   d["interaction"], tuple(d["locked"]), d["error"], tuple(d["messages"]))

    def __bool__(self) -> bool:
        return self.found

    def __repr__(self) -> str:
        if not self.found:
            return f"<no Phase: {self.message}>"
        return f"<Phase of period {self.period:.6g}, {len(self.jumps)} jumps>"


@dataclass(frozen=True)
class Response:
    """Responses to small signals; `if response:` asks whether an orbit or equilibrium was found.

    frequency          cycles per unit of time
    curves             {(input, output): complex numbers over frequency}; `value` is the only one
    mean               of each output over the orbit; `mean_by_parameter`: {output: {parameter: derivative}}
    phase_margin       of a loop gain: (frequency, degrees), or None; `gain_margin`: (frequency, factor)
    period, state      of the orbit; the period is 0 about an equilibrium
    """

    found: bool
    why: str
    message: str
    frequency: Floats
    curves: Mapping[tuple[str, str], Complexes]
    mean: Mapping[str, float]
    mean_by_parameter: Mapping[str, Mapping[str, float]]
    phase_margin: Optional[tuple[float, float]]
    gain_margin: Optional[tuple[float, float]]
    period: float
    state: Floats
    messages: tuple[str, ...]

    @classmethod
    def _of(cls, d: Mapping[str, Any]) -> "Response":
        curves = d["curves"]
        margins = curves[0][3:] if curves else (None, None)
        return cls(d["found"], d["why"], d["message"], d["frequency"], {(c[0], c[1]): c[2] for c in curves}, d["mean"],
                   d["mean_by_parameter"], margins[0], margins[1], d["period"], d["state"], tuple(d["messages"]))

    @property
    def value(self) -> Complexes:
        """The response, where there is one input and one output."""
        if len(self.curves) != 1:
            raise ValueError("there are several: take one of .curves")
        return next(iter(self.curves.values()))

    def __bool__(self) -> bool:
        return self.found

    def __repr__(self) -> str:
        if not self.found:
            return f"<no Response: {self.message}>"
        pairs = ", ".join(f"{o}/{i}" for i, o in self.curves)
        return f"<Response {pairs} at {len(self.frequency)} frequencies>"


@dataclass(frozen=True)
class Fit:
    """Fitted values.

    values, errors  by name; an error is inf where the data do not say, nan at a bound
    correlation     [n, n]
    cost, sigma     sum of squares; the common sigma of data that have none
    why             "converged", "iterations" or "cancelled"; `iterations`
    series          (experiment, quantity, rms, [t, datum, model] rows)
    minima          (values, cost) of every minimum found, the best first
    profiles        {name: (values, costs, low, high)}
    model           the model with the fitted values
    """

    values: Mapping[str, float]
    errors: Mapping[str, float]
    correlation: Floats
    cost: float
    sigma: float
    iterations: int
    why: str
    series: tuple[tuple[str, str, float, Floats], ...]
    minima: tuple[tuple[Floats, float], ...]
    profiles: Mapping[str, tuple[Floats, Floats, Optional[float], Optional[float]]]
    messages: tuple[str, ...]
    model: "Model" = field(repr=False)

    @classmethod
    def _of(cls, d: Mapping[str, Any], model: "Model") -> "Fit":
        return cls(d["values"], d["errors"], d["correlation"], d["cost"], d["sigma"], d["iterations"], d["why"],
                   tuple(d["series"]), tuple(d["minima"]), d["profiles"], tuple(d["messages"]), model)

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {v:.6g} ± {self.errors[name]:.2g}" for name, v in self.values.items())
        return f"<Fit {self.why}: {values}>"
