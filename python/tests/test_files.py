"""Results in files: what Python writes is what the command line writes; and the notebook."""

import ast
import json
import subprocess

import pytest

import saltus
from conftest import SOURCE

MODELS = ["dry_friction", "bouncing_ball", "buck", "newton_cradle", "thermostat"]


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_is_that_of_the_command_line(program, tmp_path, name):
    saltus.Model.example(name).run().save(tmp_path / "ours")
    subprocess.run([program, "run", name, "-o", tmp_path / "theirs", "-q"], check=True)
    for file in ("data.csv", "events.csv"):
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()
    assert (tmp_path / "ours" / "plot.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("how", [
    {"until": 30, "F": 0.3, "start": {"y": 0.25}},
    {"until": "10*pi", "tolerance": 1e-7, "sample": 0.5, "from_": 1},
    {"until": 20, "engine": "step", "dt": 0.01, "theta": 0.7, "sensitivity": ["F"]},
    {"until": 5, "sample": "steps", "leave": {"v": 1}, "zeno": "stop", "sensitivity": True},
])
def test_a_record_repeats_the_run(program, tmp_path, friction, how):
    path = friction.run(**how)
    path.save(tmp_path / "ours")
    subprocess.run([program, "again", tmp_path / "ours" / "run.toml", "-o", tmp_path / "theirs", "-q"], check=True)
    for file in ("data.csv", "events.csv"):
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()


def test_a_record_is_a_model(tmp_path, friction):
    path = friction.run(until=10, F=0.7)
    path.save(tmp_path / "record.toml")
    again = saltus.Model.from_file(tmp_path / "record.toml").run(until=10)
    assert (again.states == path.states).all()


def test_a_run_that_goes_on_is_recorded_with_its_start(tmp_path, program, friction):
    late = friction.run(until=7).continue_(20)
    late.save(tmp_path / "ours")
    subprocess.run([program, "again", tmp_path / "ours" / "run.toml", "-o", tmp_path / "theirs", "-q"], check=True)
    assert (tmp_path / "ours" / "data.csv").read_bytes() == (tmp_path / "theirs" / "data.csv").read_bytes()


def test_one_file_by_its_ending(tmp_path, friction):
    path = friction.run(until=10)
    for kind, start in {"csv": b"t,y,v", "h5": b"\x89HDF", "svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF",
                        "toml": b"# Everything"}.items():
        path.save(tmp_path / f"run.{kind}")
        assert (tmp_path / f"run.{kind}").read_bytes().startswith(start)
    with pytest.raises(saltus.UsageError, match="unknown kind of file"):
        path.save(tmp_path / "run.xyz")


def test_results_are_not_replaced_by_accident(tmp_path, friction):
    folder = tmp_path / "a" / "b"
    friction.run(until=10).save(folder)
    before = (folder / "data.csv").read_bytes()
    with pytest.raises(saltus.FileError, match="holds results"):
        friction.run(until=20).save(folder)
    assert (folder / "data.csv").read_bytes() == before
    friction.run(until=20).save(folder, force=True)
    assert (folder / "data.csv").read_bytes() != before
    (folder / "checkpoint").mkdir()
    with pytest.raises(saltus.FileError, match="unfinished"):
        friction.run(until=20).save(folder, force=True)


def test_a_place_that_cannot_be_written_is_told(tmp_path, friction):
    path = friction.run(until=1)
    (tmp_path / "file").write_text("")
    for target in ("file/below", "missing/run.csv", "missing/run.h5", "missing/run.svg", "missing/run.toml"):
        with pytest.raises(saltus.FileError):
            path.save(tmp_path / target)


def test_the_tour():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    tour = json.loads((SOURCE / "python" / "notebooks" / "tour.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in tour["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []  # made where it is read
        body = ast.parse("".join(cell["source"])).body
        shown = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "tour.ipynb", "exec"), names)
        if shown is not None:
            assert repr(eval(compile(ast.Expression(shown.value), "tour.ipynb", "eval"), names))
    assert names["orbit"].stable and names["branch"].special[0].type == "crossing-sliding"
