"""How a person's code is typed: checked by mypy --strict, not run."""

from typing import Optional

import numpy as np
from numpy.typing import NDArray

import saltus


def tour() -> None:
    friction: saltus.Model = saltus.Model.example("dry_friction").with_(F=0.3, omega="1/3")
    path: saltus.Trajectory = friction.run(until=60, tolerance=1e-9, leave={"v": 1}, F=0.2)
    y: NDArray[np.float64] = path.y
    state: NDArray[np.float64] = path(30.5)
    event: saltus.Event = path.events[0]
    before: Optional[NDArray[np.float64]] = event.jumped
    some: saltus.Events = path.events[1:].of("slide", on="v")
    why: str = path.check().end.why
    period: Optional[float] = friction.period
    sweep: saltus.Sweep = friction.sweep({"1/omega": (0.3, 7, 200)}, settle=3000, progress=True)
    basins: saltus.Basins = friction.basins({"y": (-2, 2, 10)}, method="direct")
    orbit: saltus.Orbit = friction.orbit(guess=True, period=1)
    multipliers: NDArray[np.complex128] = orbit.multipliers
    branch: saltus.Branch = friction.follow({"F": (0.1, 0.9)}, points=10)
    point: saltus.SpecialPoint = branch["PD1"]
    rest: saltus.Equilibrium = friction.equilibrium()
    print(multipliers, point.label, rest.kind, [o.period for o in friction.orbits(3, {"y": (0, 1)})])
    print(y, state, before, some, why, period, sweep.period, basins.group)
    try:
        saltus.Model("v' = u", v=0)
    except saltus.ModelError as error:
        print(error.line, error.hint, error.report())
    except saltus.Interrupted as stopped:
        print(stopped.result)
