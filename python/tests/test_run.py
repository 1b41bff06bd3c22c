import gc
import inspect
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import tomllib
import xml.etree.ElementTree

import numpy as np
import pytest

import saltus

HARMONIC = saltus.Model("x' = v\nv' = -x", x=1, v=0)


def test_the_state_at_any_time_is_the_closed_form():
    path = HARMONIC.run(until=20)
    t = np.linspace(0, 20, 1001)
    assert np.abs(path(t) - np.column_stack([np.cos(t), -np.sin(t)])).max() < 1e-12
    assert np.abs(path.derivative(t) - np.column_stack([-np.sin(t), -np.cos(t)])).max() < 1e-9
    assert path(3.0).shape == (2,) and path([[1.0, 2.0]]).shape == (1, 2, 2)
    for outside in (-1e-9, 20.1, np.nan):
        with pytest.raises(ValueError):
            path(outside)


def test_both_sides_of_an_impact():
    ball = saltus.Model("q' = v\nv' = -g + N", g=9.81, q=1, v=0, constraints={"N": {"gap": "q", "restitution": 0.5}})
    path = ball.run(until=1)
    t = np.sqrt(2 / 9.81)
    hit = path.events.of("impact")[0]
    assert hit.t == pytest.approx(t, abs=1e-14) and hit.jumped is not None
    assert path(hit.t, side="left")[1] == pytest.approx(-9.81 * t, abs=1e-12)
    assert path(hit.t)[1] == pytest.approx(0.5 * 9.81 * t, abs=1e-12)
    assert path.modes[path.t == hit.t].tolist() == ["|o", "|o"]
    assert np.isnan(path.q).sum() == len(path.events.of("impact"))


def test_columns_are_views_that_outlive_the_trajectory(friction):
    path = friction.run(until=60)
    assert np.shares_memory(path.y, path.states) and np.shares_memory(path.t, path.y.base)
    assert not path.y.flags.writeable
    with pytest.raises(ValueError):
        path.y[0] = 1
    y, copy = path.y, path.y.copy()
    del path
    gc.collect()
    assert np.array_equal(y, copy, equal_nan=True)


def test_columns_by_name(friction):
    path = friction.run(until=10)
    assert path.columns[:3] == ("t", "y", "v") and np.array_equal(path["sigma( v )"], path["sigma(v)"], equal_nan=True)
    with pytest.raises(KeyError, match="sigma"):
        path["sigma(w)"]
    with pytest.raises(AttributeError, match="did you mean"):
        path.forse
    row = path.at(5.0)
    assert row.y == pytest.approx(path(5.0)[0], abs=1e-14) and row["t"] == 5 and abs(row["sigma(v)"]) == 1


def test_rows_are_in_memory_once():
    code = """
import saltus
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
model = saltus.Model.example("harmonic")
small = model.run(until=1000, sample=0.1, dense=False)  # what a run needs apart from its rows stays for the next
before = resident()
path = model.run(until=1000, sample=1e-3, dense=False)
print(path.table()["x"].base is not None, (resident() - before) / (8 * len(path) * len(path.columns)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    view, share = done.stdout.split()
    assert view == "True" and float(share) < 1.2, share


def test_machine_code_that_is_off_is_not_loaded():
    code = """
import saltus
saltus.Model.example("harmonic").run(until=1000, sample=1e-2, native="off")
print("libLLVM" in open("/proc/self/maps").read())
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_rows_stand_where_they_are_asked_for(friction):
    assert np.array_equal(friction.run(until=1, sample=0.25).t, [0, 0.25, 0.5, 0.75, 1])
    times = [0.0, 0.1, 0.7]
    path = friction.run(until=1, sample=np.array(times))
    assert path.t.tolist() == times and np.allclose(path.states, path(times), atol=1e-14)
    with pytest.raises(saltus.UsageError, match="outside"):
        friction.run(until=1, sample=[2.0])


def test_events_are_a_structured_array(friction):
    events = friction.run(until=60).events
    assert events.array.dtype.names == ("t", "kind", "on", "before", "after", "state", "jumped", "count")
    slide = events.of("slide", on="v")
    assert len(slide) == 6 and set(slide.kind) == {"slide"} and (slide.after == "0").all()
    assert slide[0].on == ("v",) and slide[0].jumped is None and abs(slide[0].state[1]) < 1e-12
    assert len(events[2:5]) == 3 and [e.t for e in events] == events.t.tolist()
    assert "<table>" in events._repr_html_() and len(events.to_pandas()) == len(events)


@pytest.mark.parametrize("name", sorted(saltus.examples()))
def test_the_gallery_gives_what_the_program_gives(name, program):
    model = saltus.Model.example(name)
    until = min(model.run(until=0).end.t + 2.0, 2.0) if "until" not in model.text() else None
    arguments = [program, "run", name, "--json"] + (["--until", "2"] if until else [])
    done = subprocess.run(arguments, capture_output=True, text=True)
    document = json.loads(done.stdout)
    path = model.run(until=until)
    assert path.end.why == document["end"]["why"] and path.end.t == document["end"]["t"]
    assert path.end.state.tolist() == list(document["end"]["state"].values())
    assert path.events.t.tolist() == [e["t"] for e in document["events"]]
    assert path.events.kind.tolist() == [e["kind"] for e in document["events"]]
    assert path.events["state"].tolist() == [list(e["state"].values()) for e in document["events"]]
    svg = xml.etree.ElementTree.fromstring(path._repr_svg_())
    assert svg.tag.endswith("svg")


def test_the_fate_of_a_run_is_a_value():
    path = saltus.Model("x' = x^2", x=1).run(until=2)
    assert not path.end.ok and path.end.t == pytest.approx(1, abs=1e-6)
    with pytest.raises(saltus.RunError, match=path.end.why):
        path.check()
    assert HARMONIC.run(until=1).check().end.ok


def test_runs_go_on_from_an_end(friction):
    whole, first = friction.run(until=60), friction.run(until=20)
    second = first.continue_(60)
    assert second.start.t == 20 and np.allclose(second.end.state, whole.end.state, atol=1e-9)
    assert np.array_equal(friction.run(until=60, start=first).end.state, second.end.state)
    back = HARMONIC.run(until=-1)
    assert back.end.state == pytest.approx([np.cos(1), np.sin(1)], abs=1e-12) and back(-0.5)[0] == pytest.approx(np.cos(.5))


def test_derivatives_of_the_end():
    s = HARMONIC.run(until=1, sensitivity=True).sensitivity
    assert np.allclose(s.by_state, [[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]], atol=1e-9)


def test_options_that_do_not_apply_are_refused(friction):
    for wrong in ({"dt": 0.1}, {"theta": 0.7}, {"engine": "step", "flow": "stiff"}, {"engine": "fast"}, {"tolerance": 1},
                  {"leave": {"u": 1}}, {"leave": {"v": 2}}, {"until": "1/0"}, {"start": [1]}, {"start": {"w": 1}}, {"F": None}):
        if wrong == {"F": None}:
            with pytest.raises(saltus.UsageError, match="neither a number nor a formula"):
                friction.run(F=None)
            continue
        with pytest.raises(saltus.UsageError):
            friction.run(**wrong)


def test_the_lock_is_released():
    stop = threading.Event()

    def tick():  # it alone ends the run, and only if it runs beside it
        for _ in range(200):
            time.sleep(0.001)
        stop.set()

    thread = threading.Thread(target=tick)
    thread.start()
    path = HARMONIC.run(until=1e9, dense=False, sample=1e7, stop=stop)
    thread.join()
    assert path.end.why == "cancelled" and 0 < path.end.t < 1e9


def test_threads_share_a_model(friction):
    alone = [friction.run(until=200, F=0.1 * k).end.state.tolist() for k in range(8)]
    found = [None] * 8

    def work(k):
        found[k] = friction.run(until=200, F=0.1 * k).end.state.tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_progress_is_told_and_may_stop():
    told = []
    path = HARMONIC.run(until=1e9, dense=False, sample=1e7, progress=lambda done: told.append(done) or len(told) < 3)
    assert path.end.why == "cancelled" and len(told) == 3 and told == sorted(told) and 0 <= told[-1] < 1
    with pytest.raises(ZeroDivisionError):
        HARMONIC.run(until=1e9, dense=False, sample=1e7, progress=lambda done: 1 / 0)


INTERRUPTED = """
import os, signal, sys, time
import saltus
def interrupt(done):
    global sent, asked
    asked += 1
    if asked == 8:  # somewhere in the middle
        sent = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)
asked = 0
friction = saltus.Model.example("dry_friction")
try:
    {question}
except saltus.Interrupted as e:
    print("interrupted after", time.perf_counter() - sent, "s")
    assert isinstance(e, KeyboardInterrupt) and e.result is not None, e.result
    print(e.result)
    assert friction.run(until=1).end.ok
    sys.exit(7)
"""


@pytest.mark.parametrize("question", ["friction.run(until=1e9, dense=False, sample=1e6, progress=interrupt)",
                                      "friction.section(10**7, progress=interrupt)",
                                      "friction.sweep({'F': (0, 1, 50000)}, skip=20000, progress=interrupt)",
                                      "friction.basins({'y': (-2, 2, 2500), 'v': (-2, 2, 2500)}, progress=interrupt)",
                                      "friction.exponents(until=1e8, progress=interrupt)"])
def test_ctrl_c_keeps_what_there_is(question):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.format(question=question)], text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 7, done.stdout + done.stderr


def test_results_survive_pickling_and_other_processes(friction):
    path = friction.run(until=20)
    again = pickle.loads(pickle.dumps(path))
    t = np.linspace(0, 20, 50)
    assert np.array_equal(again(t), path(t)) and again.model == path.model and len(again.events) == len(path.events)
    sweep = friction.sweep({"F": [0.2, 0.4]}, count=5, skip=5)
    assert np.array_equal(pickle.loads(pickle.dumps(sweep)).points, sweep.points)
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            ends = pool.map(end_of, [0.1 * k for k in range(8)])
        assert ends == [end_of(0.1 * k) for k in range(8)]


def end_of(F):
    return saltus.Model.example("dry_friction").run(until=5, F=F).end.state.tolist()


def test_a_notebook_shows_the_picture(friction):
    path = friction.run(until=60)
    root = xml.etree.ElementTree.fromstring(path._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}g[@class='ribbon']")) == 1
    titles = [t for t in root.findall(f".//{space}path[@class='mark']/{space}title")]
    assert len(titles) == 3 * len(path.events)  # y, v and the plane
    assert "Dry-friction oscillator" in "".join(root.itertext())


def test_files_of_results(friction, tmp_path):
    path = friction.run(until=10)
    path.save(tmp_path / "rows.csv")
    read = np.genfromtxt(tmp_path / "rows.csv", delimiter=",", names=True)
    assert np.array_equal(read["y"], path.y, equal_nan=True)
    path.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")
    with pytest.raises(saltus.UsageError):
        path.save(tmp_path / "rows.xls")
    frame = path.to_pandas()
    assert frame.index.name == "t" and np.array_equal(frame["v"], path.v, equal_nan=True)


def test_import_needs_numpy_alone():
    code = "import sys, saltus; print([m for m in ('pandas', 'matplotlib', 'scipy', 'IPython') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name, kind", saltus._options.SOLVE.items())
def test_every_option_of_how_to_compute_is_a_keyword_and_is_recorded(friction, tmp_path, name, kind):
    questions = ("run", "section", "sweep", "basins", "orbit", "orbits", "equilibrium", "follow", "exponents")
    taken = [q for q in questions if name in inspect.signature(getattr(saltus.Model, q)).parameters]
    assert taken and all(name in getattr(saltus.Model, q).__doc__ for q in taken)
    value = {"formula": "2*pi/3", "number": 1e-3, "flag": True, "count": 2, "settings": {"v": 1}}.get(kind)
    value = {"theta": 0.75, "engine": "step", "flow": "stiff", "native": "on", "zeno": "stop"}.get(name, value)
    if "run" not in taken:
        assert friction.sweep({"F": [0.1, 0.2]}, count=3, skip=1, **{name: value}).period.size == 2
        return
    try:
        path = friction.run(**{"until": 5, name: value})
    except saltus.UsageError as error:
        assert "belongs to the engine 'step'" in error.message
        path = friction.run(**{"until": 5, "engine": "step", name: value})
    path.save(tmp_path / "r")
    record = tomllib.loads((tmp_path / "r" / "run.toml").read_text())["options"]
    assert name.rstrip("_") in record


def test_measures_and_window():
    path = HARMONIC.run(until=10, measure=["mean(x)", "pp(v)"], window=(1, 3))
    assert path.t[0] == 1 and path.t[-1] == 3
    assert abs(path.measures["mean(x)"] - (np.sin(3) - np.sin(1)) / 2) < 1e-9
    assert HARMONIC.run(until="2*pi", measure="rms(x)").measures["rms(x)"] == pytest.approx(np.sqrt(0.5), abs=1e-9)
    for wrong in (dict(measure="x"), dict(measure=5), dict(window=3), dict(window="20:30"), dict(window=(1, 2, 3))):
        with pytest.raises((saltus.UsageError, TypeError)):
            HARMONIC.run(until=10, **wrong)
