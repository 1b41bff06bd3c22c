#!/usr/bin/env python3
"""Reference end states of tests/physics/smooth_test.cpp: two independent integrators of scipy at tight tolerances."""
import numpy as np
from scipy.integrate import solve_ivp


def show(name, f, x0, until):
    ends = [solve_ivp(f, (0, until), x0, method=m, rtol=3e-14, atol=1e-14).y[:, -1] for m in ("DOP853", "LSODA")]
    print(name, [float(v) for v in ends[0]], "difference", np.abs(ends[0] - ends[1]).max())


show("Lorenz", lambda t, x: [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]], [1, 1, 1], 5)
show("Duffing", lambda t, x: [x[1], -0.3 * x[1] + x[0] - x[0] ** 3 + 0.5 * np.cos(1.2 * t)], [1, 0], 20)
show("van der Pol", lambda t, x: [x[1], 10 * (1 - x[0] ** 2) * x[1] - x[0]], [2, 0], 20)
show("tanh layer", lambda t, x: [x[1], -x[0] + np.sin(t / 3) - 0.4 * np.tanh(x[1] / 1e-3)], [1, 2], 10)
