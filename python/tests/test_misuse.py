"""What people get wrong, and what programs do that should not: one clear message each, and never a crash."""

import copy
import multiprocessing
import pickle
import threading

import numpy as np
import pytest

import saltus

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize("arguments, values", [
    ((123,), {}), ((None,), {}), ((b"x' = 1",), {}), (("",), {}), (("x' = 1",), {"x": nan}), (("x' = 1",), {"x": [1, 2]}),
    (("x' = 1",), {"x": 1j}), (("x' = p",), {"x": 0, "p": None}), (("x' = 1",), {"x": 0, "values": 5})])
def test_models_that_are_none(arguments, values):
    with pytest.raises(saltus.Error):
        saltus.Model(*arguments, **values)


@pytest.mark.parametrize("table, says", [
    ({"sections": [1]}, "no mapping"), ({"sections": {"a": 1}}, "no mapping"), ({"sections": {"a": {}}}, "needs on or every"),
    ({"sections": {"a": {"every": 1, "on": "x"}}}, "needs on or every"), ({"sections": {"a": {"evry": 1}}}, "did you mean 'every'"),
    ({"sections": {"a": {"every": -1}}}, "positive"), ({"sections": {"a": {"on": "x", "stop": "yes"}}}, "neither True nor False"),
    ({"sections": {"a": {"on": "x", "direction": "sideways"}}}, "direction"), ({"sections": {5: {"on": "x"}}}, "no name"),
    ({"constraints": {"N": {}}}, "needs gap or equals"), ({"constraints": {"N": {"gap": "x", "bounce": 1}}}, "it may say"),
    ({"jumps": {"j": {"on": "x"}}}, "sets nothing"), ({"jumps": {"j": {"on": "x", "set": 5}}}, "no mapping"),
    ({"jumps": {"j": {"set": {"x": 0}}}}, "needs on or every")])
def test_tables_that_say_nothing(table, says):
    with pytest.raises(saltus.Error, match=says):
        saltus.Model("x' = 1", x=-1, **table)


WRONG = {
    "run": [dict(until=inf), dict(until=nan), dict(until="a"), dict(until=[1]), dict(sample=0), dict(sample=-1), dict(sample=[nan]),
            dict(sample="foo"), dict(sample=1e-9), dict(sample=[3, 2, 1]), dict(sample=[[1, 2]]), dict(sample=object()), dict(dense="yes"),
            dict(max_events=-1), dict(max_events=0), dict(max_events=2**70), dict(max_events=1.5), dict(tolerance="abc"),
            dict(tolerance=nan), dict(tolerance=0), dict(leave={"v": 5}), dict(leave=3), dict(leave={"v": None}), dict(stop=5),
            dict(progress=5), dict(start="ab"), dict(start=[[1, 2]]), dict(start=[nan, 0]), dict(start={1: 2}), dict(start=5),
            dict(start={"y": "a"}), dict(engine=5), dict(engine="step", dt=0), dict(engine="step", adaptive="x"), dict(flow=1), dict(zeno=0),
            dict(native=3), dict(attract=-1), dict(attract=nan), dict(sensitivity=["zz"]), dict(sensitivity=5), dict(values=5),
            dict(options=5), dict(options={"zz": 1}), dict(options={5: 1}), dict(from_=nan), dict(F=nan), dict(F="F"), dict(zz=1)],
    "section": [dict(count=-1), dict(count=0), dict(count=10**12), dict(count=2**70), dict(count=1.5), dict(count="5"), dict(count=nan),
                dict(skip=-1), dict(section="zz"), dict(section=5)],
    "sweep": [dict(vary=v) for v in ({}, {"F": []}, {"F": (0, 1, 0)}, {"F": (0, 1, 0.5)}, {"F": (0, 1, 1e12)}, {"F": (0, inf, 3)}, {"F": "abc"},
                                     {"F": None}, {"F": [nan]}, {"F": [[1, 2]]}, {"zz": [1]}, [("F", 1)], 5, {5: [1]},
                                     {"F": [.1], "omega": [1], "y": [1]})]
    + [dict(vary={"F": [.1]}, **more) for more in (
        dict(count=-1), dict(count=10**12), dict(threads=-1), dict(threads=1.5), dict(seed=-1), dict(starts=0, box={"y": (0, 1)}),
        dict(box={"y": 5}), dict(box={"y": (1, 0)}), dict(box={"y": (nan, 1)}), dict(box=5), dict(near=nan), dict(near={"v": "a"}),
        dict(settle=-1), dict(longest=0), dict(start=5), dict(start=[]), dict(exponent=3), dict(continue_=1))],
    "basins": [dict(axes=v) for v in ({}, {"y": (0, 1, 10**9)}, {"y": (0, 1, 10**5), "v": (0, 1, 10**5)}, {"y": (1, 0, 3)}, {"y": 5},
                                      {"y": (0, 1, 1.5)}, {"y": (0, 1, "3")}, {"y": (nan, 1, 3)}, {"y": (0, inf, 3)}, {"y": "abc"},
                                      {"zz": (0, 1, 2)}, 5)]
    + [dict(axes={"y": (0, 1, 3)}, **more) for more in (
        dict(method="x"), dict(method=5), dict(join="touch:x"), dict(join="touch:-1"), dict(period=0), dict(period=-1),
        dict(refine=True), dict(points=0, method="direct"), dict(longest=0))]
    + [dict(axes={"y": (0, 1)}, random=-5), dict(axes={"y": (0, 1)}, random=10**12)],
    "orbit": [dict(period=-1), dict(period=1.5), dict(time=-1), dict(time=1), dict(guess="x"), dict(modulo=5), dict(modulo={"y": 0}),
              dict(section="zz")],
    "orbits": [dict(starts=0, box={"y": (0, 1)}), dict(starts=3, box={}), dict(starts=10**12, box={"y": (0, 1)}), dict(starts=3, box=5)],
    "follow": [dict(ranges=r) for r in ({}, {"F": (0, nan)}, {"F": (0.4,)}, {"F": 5}, {"zz": (0, 1)}, 5, {"F": (.1, .9), "omega": (.1, 1)})]
    + [dict(ranges={"F": (0.1, 0.9)}, **more) for more in (dict(points=0), dict(step=0), dict(step="x"), dict(at=5))],
}


@pytest.mark.parametrize("call, wrong", [(call, wrong) for call, list in WRONG.items() for wrong in list], ids=str)
def test_options_that_are_none(friction, call, wrong):
    small = {"run": {"until": 5}, "sweep": {"count": 5, "skip": 5}}.get(call, {})
    with pytest.raises(saltus.UsageError) as caught:
        getattr(friction, call)(**{**small, **wrong})
    assert caught.value.message and "incompatible function" not in str(caught.value)


def test_what_is_asked_of_a_run(friction):
    path = friction.run(until=5)
    for wrong in (6, nan, [1, nan], None):
        with pytest.raises(ValueError):
            path(wrong)
    assert path([]).shape == (0, 2) and path(np.empty((3, 0))).shape == (3, 0, 2)
    for missing in ("zz", 0):
        with pytest.raises(KeyError, match="columns"):
            path[missing]
    with pytest.raises(KeyError, match="columns"):
        path.events["zz"]
    with pytest.raises(saltus.UsageError, match="no kind of event 5"):
        path.events.of(5)
    with pytest.raises(IndexError):
        path.events[99]


def test_a_run_that_ends_where_it_starts(friction):
    path = friction.run(until=0)
    assert path.end.t == 0 and path(0).tolist() == [1, 2] and path.t.tolist() == [0] and len(path.events) == 0
    assert path._repr_svg_().startswith("<svg") and path.to_pandas().shape == (1, 6) and "0 events" in repr(path)
    assert "<table>" in path.events._repr_html_() and path.continue_(1).end.t == 1


def test_names_that_mean_something_elsewhere():
    for name in ("__proto__", "constructor", "lambda_", "nan_", "items", "plot", "t_", "self_"):
        model = saltus.Model(f"{name}' = -{name}", values={name: 1})
        path = model.run(until=1)
        assert path[name][-1] == pytest.approx(np.exp(-1), abs=1e-9) and model.with_(values={name: 2}).initial[name] == 2
    page = saltus.Model("x' = -x", x=1, name="<script>alert(1)</script> & \"'")._repr_mimebundle_()["text/html"]
    assert "<script>" not in page


def test_many_states():
    n = 200
    text = "\n".join(f"x{i}' = v{i}\nv{i}' = -x{i} - 0.1*sign(v{i})" for i in range(n))
    model = saltus.Model(text, values={f"{s}{i}": 1 + 0.01 * i for i in range(n) for s in "xv"})
    path = model.run(until=1)
    assert path.states.shape[1] == 2 * n and path.end.ok and len(path.modes[0]) == n
    assert path._repr_svg_().startswith("<svg") and np.array_equal(pickle.loads(pickle.dumps(path)).states, path.states, equal_nan=True)


def test_everything_is_copied_and_pickled(friction):
    wall = saltus.Model.example("impact_oscillator")
    things = [friction, friction.run(until=5), friction.run(until=5).events[:2], friction.section(5), friction.sweep({"F": [0.2]}, count=5, skip=5),
              friction.basins({"y": (0, 1, 2)}), friction.exponents(until=5), friction.orbit(), friction.equilibrium(),
              wall.follow({"w": (2, 3)}, section="strobe", points=5)]
    for thing in things:
        assert repr(pickle.loads(pickle.dumps(thing))) == repr(thing) and repr(copy.deepcopy(thing)) == repr(thing)
    orbit = pickle.loads(pickle.dumps(things[7]))
    assert orbit(0.5).tolist() == things[7](0.5).tolist()


def test_a_fork_beside_running_threads(friction):
    stop = threading.Event()
    thread = threading.Thread(target=lambda: friction.run(until=1e9, dense=False, sample=1e7, stop=stop))
    thread.start()
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(swept, [0.2, 0.3]) == [swept(0.2), swept(0.3)]
    finally:
        stop.set()
        thread.join()


def swept(F):
    return saltus.Model.example("dry_friction").sweep({"F": [F]}, count=5, skip=5).points.tolist()


def test_what_python_code_throws_goes_through(friction):
    class Broken:
        def is_set(self):
            raise RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"):
        friction.run(until=1e9, dense=False, sample=1e7, stop=Broken())
    with pytest.raises(SystemExit):
        friction.run(until=1e9, dense=False, sample=1e7, progress=lambda done: exit(3))
    assert friction.run(until=1).end.ok


@pytest.mark.parametrize("call, says", [
    (lambda m: m.run(until=1, engine="both"), "compares two runs"), (lambda m: m.run(until=10**400), "too large"),
    (lambda m: m.run(tolerance=10**400), "too large"), (lambda m: m.run(F=10**400), "too large"),
    (lambda m: m.run(max_events=10**400), "too large"), (lambda m: m.sweep({"F": [10**400]}), "no values"),
    (lambda m: m.with_(F=-10**400), "too large"), (lambda m: m.run(until=1, F=0.1, values={"F": 0.2}), "'F' twice"),
    (lambda m: m.with_({"F": 0.2}, F=0.1), "'F' twice"), (lambda m: m.run(until=1, options={"until": 2}), "'until' twice"),
    (lambda m: saltus.Model("x' = a", x=0, a=1, values={"a": 2}), "'a' twice"),
    (lambda m: m.run(until=1).events.of(on="foo"), "no surface, constraint, jump or section 'foo'"),
    (lambda m: m.run(until=1).events.of(on="vv"), "did you mean 'v'"), (lambda m: m.run(until=1).events.of(on="foo"), "there are: v, strobe"),
    (lambda m: m.run(until=1).events[:0].of(on="foo"), "there are: v, strobe"),
    (lambda m: saltus.Model("x' = -x", x=1).run(until=1).events.of(on="x"), "the model has none"),
    (lambda m: m.sweep({}), "no parameter is varied"), (lambda m: m.basins({}), "no state is varied"),
    (lambda m: m.follow({}), "nothing is followed"), (lambda m: saltus.Model.from_file("\ud800"), "is no character"),
    (lambda m: saltus.Model("x' = -x + \ud800", x=0), "is no character"), (lambda m: saltus.Model("x' = -x", x="1\udfff"), "x: '.udfff' is no character"),
    (lambda m: saltus.Model("x' = -x", x=0, values={"\ud800": 1}), "is no character"), (lambda m: saltus.Model("x' = -x", name="\ud800", x=0), "name: "),
    (lambda m: saltus.Model.from_text("equations = \"x' = \ud800\""), "is no character"), (lambda m: saltus.Model.example("\ud800"), "is no character"),
    (lambda m: m.run(until="\ud800"), "until: '.ud800' is no character"), (lambda m: m.orbit(section="\ud800"), "is no character"),
    (lambda m: m.sweep({"\ud800": [1]}), "vary: '.ud800' is no character"), (lambda m: m.with_(F="\ud800"), "F: '.ud800' is no character"),
    (lambda m: m.run(until=1).events.of("foo"), "no kind of event 'foo'"), (lambda m: m.run(until=1).events.of("slid"), "did you mean 'slide'")])
def test_values_that_are_no_values(call, says):
    with pytest.raises(saltus.UsageError, match=says):
        call(saltus.Model.example("dry_friction"))
