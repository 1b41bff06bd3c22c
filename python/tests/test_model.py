import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import saltus

SOURCE = Path(__file__).resolve().parents[2]


def test_a_model_is_written_as_on_paper(friction):
    model = saltus.Model("""
        y' = v
        v' = -y + sin(omega*t) - F*sign(v)
    """, F=0.4, omega="1/3", y=1, v=2)
    assert model.states == ("y", "v")
    assert dict(model.parameters) == {"F": 0.4, "omega": 1 / 3}
    assert dict(model.initial) == {"y": 1, "v": 2}
    assert model.period == pytest.approx(6 * np.pi, rel=1e-15)
    assert [s.name for s in model.switches] == ["v"]
    assert np.array_equal(model.run(until=60)(np.linspace(0, 60, 7)), friction.run(until=60)(np.linspace(0, 60, 7)))


def test_contacts_jumps_and_sections_are_tables():
    ball = saltus.Model("q' = v\nv' = -g + N", g=9.81, q=1, v=0, constraints={"N": {"gap": "q", "restitution": 0.5}},
                        sections={"hit": {"on": "N"}})
    assert [c.name for c in ball.constraints] == ["N"] and ball.constraints[0].restitution == 0.5
    assert [s.name for s in ball.sections] == ["hit"]
    neuron = saltus.Model("v' = 2 - v", v=0, jumps={"fire": {"on": "v - 1", "direction": "rising", "set": {"v": 0}}})
    fire = neuron.run(until=5).events.of("jump")
    assert np.allclose(fire.t, np.log(2) * np.arange(1, len(fire) + 1), rtol=1e-12)


def test_with_makes_another(friction):
    other = friction.with_(F=0.1, v="2*F")
    assert friction.parameters["F"] == 0.4 and other.parameters["F"] == 0.1 and other.initial["v"] == 0.2
    assert saltus.Model.from_text(other.text()) == other and other != friction


def test_a_mistake_is_pointed_at():
    with pytest.raises(saltus.ModelError) as caught:
        saltus.Model("v' = -y + sin(omga*t)", omega=1, v=0, y=0)
    e = caught.value
    assert (e.line, e.column, e.message, e.hint) == (1, 15, "unknown name 'omga'", "did you mean 'omega' (a parameter)?")
    assert "sin(omga*t)" in str(e) and "^~~~" in e.report()
    again = pickle.loads(pickle.dumps(e))
    assert type(again) is saltus.ModelError and (str(again), again.column) == (str(e), 15)


@pytest.mark.parametrize("case", sorted((SOURCE / "tests/errors").glob("*.toml")), ids=lambda p: p.stem)
def test_messages_are_those_of_the_golden_files(case, monkeypatch):
    expected = case.with_suffix(".txt")
    monkeypatch.chdir(case.parent)
    with pytest.raises(saltus.Error) as caught:
        saltus.Model.from_file(case.name)
    assert str(caught.value) == expected.read_text().rstrip("\n")


def test_files_and_the_gallery(tmp_path, friction):
    file = tmp_path / "friction.toml"
    file.write_text(friction.text())
    assert saltus.Model.from_file(file) == friction
    with pytest.raises(saltus.FileError):
        saltus.Model.from_file(tmp_path / "nothing.toml")
    with pytest.raises(saltus.UsageError, match="did you mean 'dry_friction'"):
        saltus.Model.example("dry_fricton")
    assert "dry_friction" in saltus.examples() and saltus.examples()["dry_friction"]


def test_pickle_and_repr(friction):
    assert pickle.loads(pickle.dumps(friction.with_(F=0.3))) == friction.with_(F=0.3)
    assert repr(friction) == "<Model 'Dry-friction oscillator': y, v; F=0.4, omega=1/3; 1 switch, 1 section>"


def test_ambiguous_names_are_refused():
    pendulum = saltus.Model("theta' = w\nw' = -dt*sin(theta)", theta=0.1, w=0, dt=4)
    for call in (lambda: pendulum.run(until=1, theta=0.5), lambda: pendulum.run(until=1, dt=0.1)):
        with pytest.raises(saltus.UsageError, match=r"run\(values=.*run\(options="):
            call()
    path = pendulum.run(until=1, values={"theta": 0.2, "dt": 1}, options={"engine": "step", "theta": 1, "dt": 0.01})
    assert path.start.state[0] == 0.2 and path.model.parameters["dt"] == 1 and path.cost.steps == 100


def test_a_notebook_shows_equations(friction):
    bundle = friction._repr_mimebundle_()
    assert bundle["text/latex"].startswith("$$\\begin{aligned}") and "tabular" not in bundle["text/latex"]
    assert "equations" in bundle["text/plain"] and "<table>" in bundle["text/html"]


def test_every_public_name_is_explained():
    for name in saltus.__all__:
        thing = getattr(saltus, name)
        assert thing.__doc__, name
        for key, member in vars(thing).items() if isinstance(thing, type) else ():
            if not key.startswith("_") and callable(getattr(thing, key)) or isinstance(member, property):
                if not key.startswith("_"):
                    assert getattr(thing, key).__doc__, f"{name}.{key}"


# What has another name in Python, and what only Python has.
RENAMED = {"from": "from_", "continue": "continue_", "period-tolerance": "near", "longest-time": "longest_time",
           "range-of": "ranges", "axis": "axes", "label": "at"}
OWN = {"start", "values", "options", "more", "progress", "stop", "dense", "max_events", "exponent", "self"}
ELSEWHERE = {"parameter", "initial",                                   # by their own names
             "folder", "force", "format", "no-plot", "plot", "show", "range", "equal", "log-x", "log-y", "json", "quiet",
             "store", "over", "colour", "log", "at"}        # files and pictures


@pytest.mark.parametrize("command, call", [("run", "run"), ("section", "section"), ("sweep", "sweep"), ("basins", "basins"),
                                           ("orbit", "orbit"), ("orbit", "orbits"), ("follow", "follow"),
                                           ("exponents", "exponents")])
def test_keywords_are_the_options_of_the_command(command, call):
    table = {name for name, _, _, commands in saltus._core.option_table() if command in commands.split()}
    expected = {RENAMED.get(name, name) for name in table - ELSEWHERE}
    if command in ("section", "sweep"):
        expected = expected - {"points"} | {"count"}
    if command == "follow":
        expected |= {"at"}
    keywords = set(inspect.signature(getattr(saltus.Model, call)).parameters) - OWN
    lacking = expected - keywords - OWN
    apart = {"measure"} if call == "follow" else {"equilibrium", "starts", "box", "seed", "threads"} if call == "orbit" else {"equilibrium"} if call == "orbits" else set()
    known = {"random"} if command == "sweep" else {"section"} if command == "exponents" else set()
    assert lacking <= apart | known, lacking
    assert keywords <= expected, keywords - expected


def test_a_joint_keeps_its_gap_at_zero():
    pendulum = saltus.Model("""
        x' = u
        y' = v
        u' = -x*L
        v' = -1 - y*L
    """, x=0.6, y=-0.8, u=0, v=0, constraints={"L": {"equals": "(x^2 + y^2 - 1)/2"}})
    path = pendulum.run(until=5)
    assert path.end.ok and np.abs(path.x**2 + path.y**2 - 1).max() < 1e-8


def test_parameters_may_be_matrices():
    a = np.array([[0.0, 1.0], [-2.0, -0.3]])
    model = saltus.Model("x[i]' = sum(A[i,j]*x[j] for j = 1..2)  for i = 1..2", A=a, values={"x[1]": 1, "x[2]": 0})
    assert model.parameters["A[2,1]"] == -2 and "A[1,1]" not in model.parameters
    end = model.run(until=2).end.state
    values, vectors = np.linalg.eig(a)  # exp(A t) x0
    wanted = (vectors * np.exp(2 * values)) @ np.linalg.solve(vectors, np.array([1.0, 0.0]))
    assert np.allclose(list(end.values()) if isinstance(end, dict) else end, wanted.real, atol=1e-9)
    stiffer = model.with_(A=np.array([[0.0, 1.0], [-3.0, -0.3]]))
    assert stiffer.parameters["A[2,1]"] == -3
    with pytest.raises(saltus.UsageError, match="A\\[1,1\\]"):
        model.with_(A=np.eye(2))


def test_a_complementarity_system_comes_from_its_matrices():
    # One diode: x' = -x + l, 0 <= l perp x >= 0, from x = -0 + ...: a tank with a floor at 0 and inflow -1.
    model = saltus.Model.from_matrices([[-1.0]], B=[[1.0]], C=[[1.0]], R=[-1.0], x0=[1.0])
    path = model.run(until=2)
    assert abs(path["x[1]"][-1]) < 1e-12  # x = 2 exp(-t) - 1 until log 2, then l = 1 holds it
    with pytest.raises(saltus.UsageError, match="it must be 1 x 1"):
        saltus.Model.from_matrices([[-1.0]], B=[[1.0, 2.0]], C=[[1.0]])


def test_mechanics_and_contacts_by_virtual_power():
    ball = saltus.Model("m = 1", mechanics={"lagrangian": "m*(x'^2 + y'^2)/2 - m*10*y"},
                        constraints={"N": {"gap": "y", "restitution": 0, "friction": "0.5", "slip": "x'"}},
                        values={"x": 0, "y": 0, "x'": 3, "y'": 0})
    path = ball.run(until=1)
    assert abs(path["x"][-1] - 0.9) < 1e-9  # v^2/(2 mu g)
