import json
import subprocess

import numpy as np
import pytest

import saltus


def document(program, *arguments):
    return json.loads(subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("model, values, options, flags", [
    ("dry_friction", "1/omega=0.3:7:12", dict(settle=500, count=20), ["--settle", "500", "-n", "20"]),
    ("buck", "Vin=20:34:8", dict(skip=100, count=20), ["--skip", "100", "-n", "20"])])
def test_sweeps_give_what_the_program_gives(program, model, values, options, flags):
    name, _, numbers = values.partition("=")
    low, high, n = numbers.split(":")
    rows = document(program, "sweep", model, values, *flags)["rows"]
    sweep = saltus.Model.example(model).sweep({name: (float(low), float(high), int(n))}, **options)
    assert sweep.is_complete and sweep.values.tolist() == [r["value"] for r in rows]
    for column in ("period", "slow", "sliding", "events", "time", "end"):
        assert getattr(sweep, column).tolist() == [r[column] for r in rows], column
    for i, row in enumerate(rows):
        points = [list(p.values()) for p in row["points"]]
        assert sweep.points[sweep.offsets[i]:sweep.offsets[i + 1]].tolist() == points


def test_basins_give_what_the_program_gives(program):
    model = saltus.Model.example("impact_oscillator")
    theirs = document(program, "basins", "impact_oscillator", "u=0:5:50", "v=-5:5:50", "--section", "strobe")
    ours = model.basins({"u": (0, 5, 50), "v": (-5, 5, 50)}, section="strobe")
    assert [(a.id, a.period, a.fraction) for a in ours.attractors] == [
        (a["id"], a["period"], a["fraction"]) for a in theirs["attractors"]]
    assert [a.points.tolist() for a in ours.attractors] == [[list(p.values()) for p in a["points"]]
                                                            for a in theirs["attractors"]]
    assert ours.group.shape == (50, 50) and sum(ours.fraction(g) for g in np.unique(ours.group)) == pytest.approx(1)
    centres = ours.centres
    assert ours.at(u=centres["u"][7], v=centres["v"][31]) == ours.group[7, 31]


def test_the_first_axis_is_the_first_index():
    fall = saltus.Model("x' = -x\ny' = -y + 0*x", x=1, y=1, sections={"tick": {"every": 1}})
    basins = fall.basins({"x": (-1, 1, 3), "y": (-1, 1, 5)})
    assert basins.group.shape == (3, 5) and (basins.group == 1).all() and basins.attractors[0].period == 1


def test_two_parameters_make_a_map(friction):
    sweep = friction.sweep({"F": [0.2, 0.4, 0.6], "omega": [0.5, 1.0]}, settle=200, count=10)
    assert len(sweep) == 6 and sweep.values[0].tolist() == [0.2, 0.4, 0.6] * 2 and len(sweep.points) == 0
    assert set(sweep.table()) >= {"F", "omega", "period"}


def test_a_section_has_a_level(program):
    theirs = document(program, "section", "chua", "-n", "30", "--level", "1/4")
    ours = saltus.Model.example("chua").section(30, level="1/4")
    assert ours.t.tolist() == [p["t"] for p in theirs["points"]] and np.abs(ours.x - 0.25).max() < 1e-12
    for wrong in ("nonsense", np.nan, 1j):
        with pytest.raises(saltus.UsageError):
            saltus.Model.example("chua").section(3, level=wrong)
    with pytest.raises(saltus.UsageError, match="not on a function"):
        saltus.Model.example("dry_friction").section(3, level=1)


def test_rates_are_those_of_the_equations(friction):
    assert friction.rates([1, 2], t=3).tolist() == pytest.approx([2, -1 + np.sin(1) - 0.4], abs=1e-14)
    points = np.array([[[1, 2], [0.1, 0]], [[5, 0], [0, -1]]])  # the second sticks, the third starts to slide off
    field = friction.rates(points, F=0.3)
    assert field.shape == (2, 2, 2) and field[0, 1].tolist() == [0, 0] and field[1, 0].tolist() == [0, -4.7]
    ball = saltus.Model("q' = v\nv' = -g + N", g=9.81, q=1, v=0, constraints={"N": {"gap": "q", "restitution": 0.5}})
    assert ball.rates([1, 0]).tolist() == [0, -9.81] and ball.rates([0, 0]).tolist() == [0, 0]
    assert np.isnan(ball.rates([-1, 0])).all() and np.isnan(ball.rates([np.nan, 0])).all()
    for wrong in (1.0, [1.0], [[1, 2, 3]], "ab"):
        with pytest.raises(ValueError):
            friction.rates(wrong)


def test_starts_and_directions(friction):
    starts = friction.sweep({"F": [0.2, 0.4]}, start=[[0, 0], [1, 1]], skip=20, count=5)
    assert len(starts) == 4 and starts.start.tolist() == ["1", "2", "1", "2"] and starts.of(0.2).shape == (10, 2)
    both = friction.sweep({"F": [0.2, 0.4]}, continue_="both", skip=20, count=5)
    assert set(both.start) == {"up", "down"}
    for wrong in ({"continue_": "left"}, {"starts": 3}, {"start": [1]}, {"near": {"w": 1}}):
        with pytest.raises(saltus.UsageError):
            friction.sweep({"F": [0.2]}, **wrong)
    with pytest.raises(saltus.UsageError):
        friction.sweep({})
    with pytest.raises(saltus.UsageError):
        friction.basins({"F": (0, 1, 3)})


def test_pictures_with_matplotlib(friction, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    before = dict(matplotlib.rcParams)
    path = friction.run(until=30)
    assert len(path.plot()) == 3 and path.plot_plane().get_xlabel() == "y"
    sweep = friction.sweep({"1/omega": (1, 4, 5)}, settle=200, count=5)
    assert "sliding" in sweep.plot(colour="sliding").get_legend().get_texts()[0].get_text()
    friction.section(20).plot()
    saltus.Model.example("impact_oscillator").basins({"u": (0, 5, 6), "v": (-5, 5, 6)}, section="strobe").plot()
    path.animate(seconds=0.2)._draw_was_started = True
    assert dict(matplotlib.rcParams) == before
    path.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    matplotlib.pyplot.close("all")


def test_exponents_are_known_ones_and_those_of_the_program(program):
    saddle = saltus.Model("x' = x\ny' = -2*y + 0*x", x=1e-6, y=1)
    found = saddle.exponents(until=40)
    assert found.exponents == pytest.approx([1, -2], abs=1e-9) and found.end.why == "time"
    theirs = document(program, "exponents", "lorenz", "--until", "20")
    ours = saltus.Model.example("lorenz").exponents(until=20)
    assert ours.exponents.tolist() == theirs["exponents"] and ours.time == theirs["time"]
    with pytest.raises(saltus.UsageError):
        saddle.exponents(until=1, engine="step")


def test_measures_of_a_sweep_balance_the_power(friction):
    sweep = friction.sweep({"omega": [0.5, 0.6, 0.8]}, skip=200, count=20, measure=["mean(sin(omega*t)*v)", "mean(F*abs(v))"])
    into, out = sweep.measures.values()
    assert np.abs(into - out).max() < 1e-8 and into.min() > 0
