#!/usr/bin/python3
"""Taylor coefficients of formulas to 60 digits, for tests/code/jet_test.cpp.

    scripts/jet_reference.py > tests/code/jet_reference.json

Nothing here uses the recurrences of src/code/jet_rules.hpp: a function f of a series x = x0 + u is the sum of
f_n u^n, with f_n from numerical differentiation by mpmath at high precision and the powers of u by products.

Each coefficient k comes with a magnitude, the size of the numbers from which it can be computed at all. A coefficient
of c = f(a) that is accurate up to rounding is off by a few ulps of

    local_k = |c_k| + sum over the arguments a of sum_j |f_a|_(k-j) |a_j|        f_a: series of the partial derivative

(the second part is what perturbing the coefficients of a by an ulp does), and what one operation gets wrong reaches
the result through the series of d result / d c. The magnitude is the sum over all operations of |d result/d c| * local.
"""
import ast
import json
import random

from mpmath import mp, mpf

mp.dps = 60
ORDER = 30


def product(a, b):
    return [mp.fsum(a[j] * b[k - j] for j in range(k + 1)) for k in range(ORDER + 1)]


def absolute(a):
    return [abs(v) for v in a]


def constant(v):
    return [mpf(v)] + [mpf(0)] * ORDER


def real_cbrt(v):
    return -mp.cbrt(-v) if v < 0 else mp.cbrt(v)


FUNCTIONS = {
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "exp": mp.exp, "log": mp.log, "sqrt": mp.sqrt,
    "log10": mp.log10, "log2": lambda v: mp.log(v) / mp.log(2), "expm1": mp.expm1, "log1p": mp.log1p,
    "cbrt": real_cbrt, "recip": lambda v: 1 / v,
}


def compose(f, x):
    """The series of f(x) and of f'(x)."""
    with mp.workdps(250):
        # what should be zero comes out at the level of the working precision
        terms = [mp.chop(v, tol=mpf(10) ** -200) for v in mp.taylor(f, x[0], ORDER + 1)]
    u = [mpf(0)] + x[1:]
    value, slope, power = constant(0), constant(0), constant(1)
    for n in range(ORDER + 1):
        value = [v + terms[n] * p for v, p in zip(value, power)]
        slope = [s + (n + 1) * terms[n + 1] * p for s, p in zip(slope, power)]
        power = product(power, u)
    return value, slope


def whole_power(a, n):
    result = constant(1)
    for _ in range(n):
        result = product(result, a)
    return result


class Node:
    """One operation: its series, its arguments and the series of the partial derivatives."""

    def __init__(self, series, arguments=(), partials=()):
        self.series, self.arguments, self.partials = series, arguments, partials
        self.adjoint = constant(0)

    def local(self):
        total = absolute(self.series)
        for argument, partial in zip(self.arguments, self.partials):
            total = [a + b for a, b in zip(total, product(absolute(partial), absolute(argument.series)))]
        return total


class Formula:
    def __init__(self, text, values):
        self.values, self.nodes = values, []
        self.result = self.visit(ast.parse(text.replace("^", "**"), mode="eval").body)

    def add(self, series, arguments, partials):
        self.nodes.append(Node(series, arguments, partials))
        return self.nodes[-1]

    def function(self, name, a):
        value, slope = compose(FUNCTIONS[name], a.series)
        return self.add(value, (a,), (slope,))

    def visit(self, e):
        if isinstance(e, ast.Constant):
            return Node(constant(float(e.value)))
        if isinstance(e, ast.Name):
            return Node([mpf(v) for v in self.values[e.id]])
        if isinstance(e, ast.UnaryOp):
            a = self.visit(e.operand)
            return self.add([-v for v in a.series], (a,), (constant(-1),))
        if isinstance(e, ast.Call):
            arguments = [self.visit(a) for a in e.args]
            if e.func.id == "hypot":
                return self.length(*arguments)
            return self.angle(*arguments) if e.func.id == "atan2" else self.function(e.func.id, arguments[0])
        a, b = self.visit(e.left), self.visit(e.right)
        if isinstance(e.op, ast.Add):
            return self.add([v + w for v, w in zip(a.series, b.series)], (a, b), (constant(1), constant(1)))
        if isinstance(e.op, ast.Sub):
            return self.add([v - w for v, w in zip(a.series, b.series)], (a, b), (constant(1), constant(-1)))
        if isinstance(e.op, ast.Mult):
            return self.add(product(a.series, b.series), (a, b), (b.series, a.series))
        if isinstance(e.op, ast.Div):
            inverse, slope = compose(FUNCTIONS["recip"], b.series)
            return self.add(product(a.series, inverse), (a, b), (inverse, product(a.series, slope)))
        return self.power(a, b)

    def power(self, a, b):
        x, r = a.series, b.series
        whole = r[0] == int(r[0]) and not any(r[1:])
        if whole and r[0] > 0:
            n = int(r[0])
            return self.add(whole_power(x, n), (a,), ([n * v for v in whole_power(x, n - 1)],))
        if not any(r[1:]):
            value, slope = compose(lambda v: v ** r[0], x)
            return self.add(value, (a,), (slope,))
        log, slope = compose(mp.log, x)
        value, _ = compose(mp.exp, product(r, log))
        return self.add(value, (a, b), (product(product(value, r), slope), product(value, log)))

    def angle(self, a, b):
        y, x = a.series, b.series
        r, _ = compose(FUNCTIONS["recip"], [v + w for v, w in zip(product(x, x), product(y, y))])
        if abs(x[0]) > abs(y[0]):
            value, _ = compose(mp.atan, product(y, compose(FUNCTIONS["recip"], x)[0]))
        else:
            value = [-v for v in compose(mp.atan, product(x, compose(FUNCTIONS["recip"], y)[0]))[0]]
        value = [mp.atan2(y[0], x[0])] + value[1:]
        return self.add(value, (a, b), (product(x, r), [-v for v in product(y, r)]))

    def length(self, a, b):
        squares = [self.add(product(v.series, v.series), (v,), ([2 * w for w in v.series],)) for v in (a, b)]
        total = self.add([v + w for v, w in zip(*[s.series for s in squares])], squares, (constant(1), constant(1)))
        return self.function("sqrt", total)

    def magnitude(self):
        self.result.adjoint = constant(1)
        total = constant(0)
        for node in reversed(self.nodes):
            total = [a + b for a, b in zip(total, product(absolute(node.adjoint), node.local()))]
            for argument, partial in zip(node.arguments, node.partials):
                effect = product(node.adjoint, partial)
                argument.adjoint = [a + b for a, b in zip(argument.adjoint, effect)]
        return total


def series(start, size, seed):
    """A series that starts at a given value; its coefficients decay like size^k."""
    choice = random.Random(seed)
    return [start] + [float(f"{choice.uniform(-1, 1) * size ** k:.6g}") for k in range(1, ORDER + 1)]


def cases():
    """(formula, x, y, t, p)"""
    x, y = series(0.7, 0.8, 1), series(-1.3, 0.7, 2)
    starts = {
        "sin": [0.7, -2.3, 30], "cos": [0.7, 1.5707, -12], "tan": [0.7, 1.5, -1.2], "asin": [0.3, -0.95, 0.999],
        "acos": [0.9, -0.5, 0, 0.9999], "atan": [0.4, -3, 50], "sinh": [0.5, -4, 0.001], "cosh": [0.5, -4, 0.001],
        "tanh": [0.3, -2, 8, -19.5], "exp": [1, -20, 3.5], "log": [2, 1.0001, 0.001], "sqrt": [2, 0.0001],
        "cbrt": [2, -2, -0.001], "log10": [2, 0.001], "log2": [2, 0.001], "expm1": [1e-9, -0.5, 3, -2000],
        "log1p": [1e-9, 2, -0.999],
    }
    distance = {("tan", 1.5): 0.07, ("asin", 0.999): 0.001, ("acos", 0.9): 0.1, ("acos", 0.9999): 0.0001,
                ("asin", -0.95): 0.05, ("log", 0.001): 0.001, ("sqrt", 0.0001): 0.0001, ("cbrt", -0.001): 0.001,
                ("log10", 0.001): 0.001, ("log2", 0.001): 0.001, ("log1p", -0.999): 0.001}
    for name, values in starts.items():
        for seed, start in enumerate(values):
            size = distance.get((name, start), 0.6)
            yield f"{name}(x)", series(start, size, 10 + seed), y, 0, 0
            yield f"{name}(x)", [start, size] + [0.0] * (ORDER - 1), y, 0, 0
    for formula in ["x+y", "x-y", "-x", "x*y", "x*x", "x/y", "3/x", "x/3", "2*x-1.5", "1-x*y", "x*y*x/y"]:
        yield formula, x, y, 0, 0
    for sx in [1, -1]:
        for sy in [1, -1]:
            yield "atan2(x,y)", series(0.8 * sx, 0.5, 3), series(1.1 * sy, 0.5, 4), 0, 0
    for a, b in [(0, 2), (0, -2), (2, 0), (-2, 0), (1e-9, -1)]:
        yield "atan2(x,y)", series(a, 0.5, 5), series(b, 0.5, 6), 0, 0
    for formula in ["x^2", "x^3", "x^7", "x^20", "x^-1", "x^-4", "x^0.5", "x^2.5", "x^-1.5", "x^y", "2.5^x", "x^(y*y)"]:
        yield formula, x, y, 0, 0
    for p in [3, 0.5, -2, 13, 2.75, -0.1, 0, 1]:
        yield "x^p", x, y, 0, p
    for start in [0, 1e-9, -1e-3]:
        for p in [2, 3, 5]:
            yield f"x^{p}", series(start, 0.7, 7), y, 0, 0
            yield "x^p", series(start, 0.7, 7), y, 0, p
    for formula in [
        "exp(sin(x*y))", "log(1+exp(x))", "sqrt(x^2+y^2)", "tanh(10*(x-y))", "tan(sin(x))", "1/(1+exp(-3*x))",
        "atan2(sin(x),cos(y))", "(x^2+1)^(y/3)", "cosh(log(x))+sinh(log(x))", "asin(x/(1+x^2))", "acos(tanh(x))",
        "cbrt(sin(y))", "exp(-x^2)*cos(4*y)", "atan(exp(x))-atan(exp(-x))", "x/sqrt(1+x^2)*exp(y)",
        "sin(cos(sin(cos(x))))", "exp(log(x)*1.5)", "1-2/(1+exp(6.3598*x))", "sinh(x)/cosh(x)", "tanh(y/0.01)",
        "hypot(x,y)", "hypot(3,x)", "expm1(x*y)/log1p(x)", "log10(1+x^2)-log2(2+y)",
    ]:
        yield formula, x, y, 0, 0
    for formula in [
        "sin(3*t+1)", "cos(p*t)-t", "exp(-t)*cos(2*t)", "sin(t^2)", "-x+sin(p*t)-0.4", "x*cos(p*t+y)", "y/(2+t)",
        "sqrt(1+t)*x", "tanh(t-2)+atan2(t,x)",
    ]:
        yield formula, x, y, 1.75, 1 / 3


def main():
    rows = []
    for formula, x, y, t, p in cases():
        used = {n.id for n in ast.walk(ast.parse(formula.replace("^", "**"))) if isinstance(n, ast.Name)}
        time = [float(t), 1.0] + [0.0] * (ORDER - 1)
        f = Formula(formula, {"x": x, "y": y, "t": time, "p": constant(float(p))})
        row = {"formula": formula, "t": float(t), "p": float(p)}
        for name, value in (("x", x), ("y", y)):
            if name in used:
                row[name] = [float(v) for v in value]
        row["value"] = [float(v) for v in f.result.series]
        row["magnitude"] = [float(mp.nstr(v, 4)) for v in f.magnitude()]
        rows.append(row)
    print("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]")


if __name__ == "__main__":
    main()
