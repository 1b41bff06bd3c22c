"""saltus: nonsmooth dynamical systems from equations written as on paper.

    import saltus
    friction = saltus.Model('''
        y' = v
        v' = -y + sin(omega*t) - F*sign(v)
    ''', F=0.4, omega="1/3", y=1, v=2)
    path = friction.run(until=60)
    path.y, path.t            # NumPy arrays
    path(30.5)                # state at any time
    path.events               # every switch, to the last digits
    path.plot()
"""

from . import _core
from ._errors import Error, FileError, Interrupted, ModelError, RunError, UsageError
from ._derivatives import Fit, Phase, PhaseJump, Response
from ._many import Attractor, Basins, Exponents, Sweep
from ._model import Constraint, Model, Named, Switch
from ._orbits import Branch, BranchEnd, Equilibrium, Leg, Orbit, SpecialPoint
from ._trajectory import Cost, End, Event, Events, Pieces, Row, Section, Sensitivity, Sliding, Start, Trajectory

__all__ = ["Model", "Trajectory", "Section", "Sweep", "Basins", "Attractor", "Exponents", "Orbit", "Leg", "Equilibrium",
           "Phase", "PhaseJump", "Response", "Fit",
           "Branch", "BranchEnd", "SpecialPoint", "Events", "Event", "End", "Start", "Cost", "Sliding", "Pieces", "Row",
           "Sensitivity", "Switch", "Constraint", "Named", "Error", "ModelError", "UsageError", "FileError", "RunError",
           "Interrupted", "examples", "version"]


def examples() -> dict[str, str]:
    """The gallery: names of models, each with one sentence. `Model.example(name)` gives one."""
    return dict(_core.examples())


def version() -> str:
    """The version of saltus."""
    return str(_core.version())


__version__ = version()
