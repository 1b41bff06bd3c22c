#!/usr/bin/python3
"""Reference values of stiff problems for tests/flow/stiff_test.cpp: Radau IIA at two tolerances with the digits they share.

    scripts/stiff_reference.py

Neither SUNDIALS nor any code of this project is used.
"""
from scipy.integrate import solve_ivp

MU = 1000.0


def van_der_pol(t, y):
    return [y[1], MU * (1 - y[0] ** 2) * y[1] - y[0]]


def van_der_pol_jacobian(t, y):
    return [[0, 1], [-2 * MU * y[0] * y[1] - 1, MU * (1 - y[0] ** 2)]]


def robertson(t, y):
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [-a + b, a - b - c, c]


def robertson_jacobian(t, y):
    return [
        [-0.04, 1e4 * y[2], 1e4 * y[1]],
        [0.04, -1e4 * y[2] - 6e7 * y[1], -1e4 * y[1]],
        [0, 6e7 * y[1], 0],
    ]


def show(name, f, jacobian, start, end):
    for tolerance in (1e-10, 1e-12):
        run = solve_ivp(f, (0, end), start, method="Radau", rtol=tolerance, atol=tolerance * 1e-8, jac=jacobian)
        print(f"{name} t = {end:g} tolerance {tolerance:g}:", *(f"{v:.15e}" for v in run.y[:, -1]), flush=True)


show("Robertson", robertson, robertson_jacobian, [1, 0, 0], 0.4)
show("Robertson", robertson, robertson_jacobian, [1, 0, 0], 40)
show("van der Pol", van_der_pol, van_der_pol_jacobian, [2, 0], 2000)
