import json
import subprocess

import numpy as np
import pytest

import saltus


def document(program, *arguments):
    return json.loads(subprocess.run([program, *arguments, "--json"], capture_output=True, text=True).stdout)


def number(value):
    return {"inf": np.inf, "-inf": -np.inf}.get(value, value)


def complexes(pairs):
    return [complex(number(re), number(im)) for re, im in pairs]


def test_an_orbit_is_what_the_program_finds(program):
    theirs = document(program, "orbit", "dry_friction")
    ours = saltus.Model.example("dry_friction").orbit()
    assert ours and ours.kind == theirs["kind"] and ours.period == theirs["period"] and ours.stable == theirs["stable"]
    assert ours.state.tolist() == list(theirs["state"].values())
    assert ours.multipliers.tolist() == complexes(theirs["multipliers"])
    assert ours.monodromy.tolist() == theirs["monodromy"]
    assert list(ours.signature) == theirs["signature"] and ours.events.t.tolist() == [e["t"] for e in theirs["events"]]


def test_a_branch_is_what_the_program_follows(program):
    theirs = document(program, "follow", "impact_oscillator", "w=2:4", "--section", "strobe")
    ours = saltus.Model.example("impact_oscillator").follow({"w": (2, 4)}, section="strobe")
    assert ours.values.tolist() == [p["value"] for p in theirs["points"]]
    assert ours.states.tolist() == [list(p["state"].values()) for p in theirs["points"]]
    assert ours.period.tolist() == [p["period"] for p in theirs["points"]]
    assert ours.stable.tolist() == [p["stable"] for p in theirs["points"]]
    assert [(s.label, s.type, s.value) for s in ours.special] == [
        (s["label"], s["type"], s["value"]) for s in theirs["special"]]
    assert [(e.why, e.value) for e in ours.ends] == [(e["why"], e["value"]) for e in theirs["ends"]]


VAN_DER_POL = "x' = y\ny' = mu*(1 - x^2)*y - x"


def test_the_multiplier_of_a_cycle_is_the_integral_of_the_divergence():
    model = saltus.Model(VAN_DER_POL, mu=0.5, x=1, y=0)
    cycle = model.orbit()
    t = np.linspace(cycle.path.start.t, cycle.path.end.t, 20001)
    divergence = 0.5 * (1 - cycle(t)[:, 0]**2)
    assert cycle.multipliers[0].real == pytest.approx(np.exp(np.trapz(divergence, t)), rel=1e-6)
    assert abs(cycle.trivial - 1) < 1e-7 and cycle.stable
    assert cycle(t[100] + 7 * cycle.period) == pytest.approx(cycle(t[100]), abs=1e-7)


def test_an_unstable_orbit_is_found_from_a_guess_or_backward():
    model = saltus.Model(VAN_DER_POL, mu=-0.5, x=1.9, y=0, sections={"turn": {"on": "y", "direction": "falling"}})
    cycle = model.orbit(backward=True)
    assert cycle and not cycle.stable and abs(cycle.multipliers[0]) > 1
    again = model.orbit(guess=True, start=0.999 * cycle.state)
    assert again.period == pytest.approx(cycle.period, rel=1e-9)


def test_where_there_is_none_it_says_so():
    fall = saltus.Model("x' = 1", x=0).orbit(until=10)
    assert not fall and fall.kind == "none" and fall.message and "no Orbit" in repr(fall)
    with pytest.raises(ValueError, match="no orbit"):
        fall.plot()
    rest = saltus.Model("x' = 1", x=0).equilibrium(until=10)
    assert not rest and rest.kind == "none" and rest.message
    assert not saltus.Model("x' = a", x=0, a=1).follow({"a": (1, 2)}, equilibrium=True)


def test_orbits_near_many_starts_are_told_apart():
    # r' = r (1 - r^2)(4 - r^2): cycles at r = 1, stable, and r = 2, unstable.
    model = saltus.Model("x' = x*(1 - x^2 - y^2)*(4 - x^2 - y^2) - y\ny' = y*(1 - x^2 - y^2)*(4 - x^2 - y^2) + x",
                         x=1.5, y=0.5, sections={"axis": {"on": "y", "direction": "rising"}})
    found = model.orbits(6, {"x": (0.8, 2.1), "y": (0, 0.1)}, seed=3)
    assert {(round(abs(o.state[0]), 6), o.stable) for o in found} >= {(1.0, True)}
    assert all(o.period == pytest.approx(2 * np.pi) for o in found)


def test_equilibria_of_friction_are_a_set():
    rest = saltus.Model("x' = v\nv' = -x - sign(v)", x=0.3, v=0).equilibrium()
    assert rest.kind == "equilibrium-set" and rest.ends is not None
    assert sorted(end[0] for end in rest.ends) == pytest.approx([-1, 1])
    spiral = saltus.Model("x' = v\nv' = -x - v", x=1, v=0).equilibrium()
    assert spiral.stable and sorted(spiral.eigenvalues.imag) == pytest.approx([-np.sqrt(0.75), np.sqrt(0.75)])


def test_a_fold_and_a_hopf_point_lie_where_the_formulas_say(tmp_path):
    fold = saltus.Model("x' = mu - x^2", mu=1, x=1).follow({"mu": (-1, 2)}, equilibrium=True)
    assert fold["LP1"].value == pytest.approx(0, abs=1e-10) and fold["LP1"].type == "fold"
    assert set(fold.stable.tolist()) == {True, False} and len(fold) == len(fold.table()["mu"])
    with pytest.raises(KeyError, match="LP1"):
        fold["LP2"]
    hopf = saltus.Model("x' = mu*x - y - x*(x^2 + y^2)\ny' = x + mu*y - y*(x^2 + y^2)", mu=-0.5, x=0, y=0)
    rest = hopf.follow({"mu": (-1, 1)}, equilibrium=True)
    assert rest["HB1"].value == pytest.approx(0, abs=1e-9)
    cycles = hopf.follow({"mu": (-1, 1)}, at=rest["HB1"])
    assert cycles and not cycles.equilibria and cycles.period[-1] == pytest.approx(2 * np.pi)
    # The cycle has the radius sqrt(mu).
    assert np.hypot(*cycles.states[-1]) == pytest.approx(np.sqrt(cycles.values[-1]), rel=1e-6)


def test_a_special_point_is_followed_in_two_parameters():
    # The fold of x' = mu + nu x - x^3 lies at mu^2 = 4 nu^3 / 27.
    model = saltus.Model("x' = mu + nu*x - x^3", mu=-1, nu=1, x=-1.3)
    branch = model.follow({"mu": (-1, 1)}, equilibrium=True)
    curve = model.follow({"mu": (-1, 1), "nu": (0.2, 2)}, at=branch["LP1"])
    assert curve.values.shape[1] == 2
    mu, nu = curve.values.T
    assert mu**2 == pytest.approx(4 * nu**3 / 27, abs=1e-8)
    with pytest.raises(saltus.UsageError):
        model.follow({"mu": (-1, 1), "nu": (0.2, 2)})


def test_wrong_questions_are_refused(friction):
    for wrong in (dict(time=3), dict(period=-1), dict(modulo={"z": 1}), dict(section="no"), dict(attract=3)):
        with pytest.raises(saltus.UsageError):
            friction.orbit(**wrong)
    for ranges in ({}, {"omega": 3}, {"omega": (1, 1)}, {"omga": (1, 2)}, {"F": (0, 1), "omega": (1, 2)}):
        with pytest.raises(saltus.Error):
            friction.follow(ranges)
    with pytest.raises(saltus.UsageError):
        friction.follow({"F": (0.1, 1)}, at="PD1")
    with pytest.raises(saltus.UsageError):
        friction.orbits(3, {})


def test_a_stop_keeps_what_there_is():
    calls = []
    branch = saltus.Model.example("impact_oscillator").follow(
        {"w": (2, 4)}, section="strobe", step=1e-6, points=10**6,
        progress=lambda share: calls.append(share) or len(calls) < 4)
    assert branch.found and 1 < len(branch) and len(calls) == 4


def test_pictures_of_orbits(friction):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = friction.orbit().plot()
    assert len(axes) == 2 and axes[1].get_title(loc="left") == "multipliers"
    branch = saltus.Model("x' = mu - x^2", mu=1, x=1).follow({"mu": (-1, 2)}, equilibrium=True)
    axis = branch.plot()
    assert [line.get_linestyle() for line in axis.get_lines()][:2] == ["-", "--"] and axis.texts[0].get_text() == "LP1"
    with pytest.raises(saltus.UsageError):
        branch.plot("period")


def test_points_of_a_branch_are_arrays():
    model = saltus.Model("x' = mu - x^2", mu=1, x=1)
    branch = model.follow({"mu": (0.5, 2)}, equilibrium=True)
    with pytest.raises(TypeError, match="label"):
        branch[0]
    with pytest.raises(TypeError, match="iterable"):
        iter(branch)


def test_a_phase_response_is_what_the_program_finds(program):
    theirs = document(program, "phase", "integrate_and_fire", "--per-cycle")
    ours = saltus.Model.example("integrate_and_fire").phase(per_cycle=True)
    assert ours and ours.period == theirs["period"] and ours.cycle == pytest.approx(2 * np.pi)
    assert ours.t.tolist() == [p["t"] for p in theirs["points"]]
    assert ours.z.ravel().tolist() == [p["z"]["V"] for p in theirs["points"]]
    assert ours.period_by_parameter == theirs["period_by_parameter"]
    assert not saltus.Model.example("dry_friction").phase()


def test_a_response_is_what_the_program_finds(program):
    theirs = document(program, "response", "van_der_pol", "--input", "mu", "--output", "x", "--from", "0.01", "--to", "1",
                      "-n", "5")
    ours = saltus.Model.example("van_der_pol").response("mu", "x", lowest=0.01, highest=1, points=5)
    assert ours.frequency.tolist() == [p["frequency"] for p in theirs["points"]]
    assert ours.value.tolist() == [complex(p["re"], p["im"]) for p in theirs["points"]]
    assert ours.mean["x"] == theirs["mean"] and ours.mean_by_parameter["x"] == theirs["mean_by_parameter"]


def test_a_fit_finds_what_made_the_data():
    model = saltus.Model("f' = if(t < p, 10 - f, -f)", p=1.8, f=3)
    t, f = [0.5, 1.1, 1.5, 2.1, 2.3, 3.1], [6.2, 8.1, 8.8, 8.3, 6.8, 2.9]
    fit = model.fit({"p": (1, 3), "f(0)": None}, {"d": {"t": t, "f": f}}, profile=True)
    assert fit.values["p"] == pytest.approx(1.99613488, abs=1e-8)
    assert fit.model.run(until=1).start.state[0] == fit.values["f(0)"]
    assert fit.profiles["p"][2] < fit.values["p"] < fit.profiles["p"][3]
    with pytest.raises(saltus.UsageError):
        model.fit(["p"], {"d": {"t": t, "f": f[1:]}})
