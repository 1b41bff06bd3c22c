#!/usr/bin/env python3
"""Check the gallery without saltus: an independent second reading of every models/<name>/.

Usage: check_gallery.py [MODELS_DIR] [NAME...]

Each model must have only known keys, an initial value for every state, names that resolve, finite rates and
open or touching gaps at the start, and a README whose description is the first comment of the model file.
Prints one line per mistake; exit code 1 if there is any.
"""

import ast
import math
import re
import sys
import tomllib
from pathlib import Path

TOP_KEYS = {"name", "ref", "equations", "parameters", "initial", "constraint", "jump", "section", "run"}
TABLE_KEYS = {
    "constraint": {"gap", "restitution"},
    "jump": {"on", "direction", "set"},
    "section": {"every", "on", "direction", "stop"},
    "run": {"from", "until", "tolerance", "engine", "dt"},
}
DIRECTIONS = {"rising", "falling", "any"}
CONSTANTS = {"pi": math.pi, "e": math.e}
DESCRIPTION_WIDTH = 76


def sign(x, hold=1):
    return (x > 0) - (x < 0)


FUNCTIONS = {name: getattr(math, name) for name in
             "sin cos tan asin acos atan atan2 sinh cosh tanh exp log sqrt cbrt floor".split()}
FUNCTIONS |= {
    "sign": sign, "abs": abs, "min": min, "max": max,
    "sat": lambda x, low, high: min(max(x, low), high),
    "step": lambda x: float(x > 0),
    "if_": lambda condition, yes, no: yes if condition else no,
    "mod": lambda x, period: x - period * math.floor(x / period),
}


class Mistake(Exception):
    """What is wrong with one model, in words."""


def formula(value):
    """A number or a formula as a Python syntax tree; the two grammars differ only in `^` and `if`."""
    text = re.sub(r"\bif\s*\(", "if_(", str(value).strip().replace("^", "**"))
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise Mistake(f"cannot read '{value}': {error.msg}") from None


def names_in(tree):
    """The variables of a formula; functions must be known and are left out."""
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for name in called - FUNCTIONS.keys():
        raise Mistake(f"unknown function '{name}'")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - called


def evaluate(tree, values):
    return eval(compile(tree, "<formula>", "eval"), {"__builtins__": {}}, FUNCTIONS | values)


def read_equations(text):
    """-> (rates by state, named formulas by name), both as syntax trees."""
    lines = []
    for raw in text.splitlines():
        line = raw.split("#")[0].strip()
        if line and line[0] in "+-*/^" and lines:
            lines[-1] += " " + line
        elif line:
            lines.append(line)
    rates, named = {}, {}
    for line in lines:
        match = re.fullmatch(r"([A-Za-z_]\w*)\s*('?)\s*=\s*(.+)", line)
        if not match:
            raise Mistake(f"not an equation: '{line}'")
        name, prime, right = match.groups()
        if name in rates or name in named:
            raise Mistake(f"'{name}' is defined twice")
        (rates if prime else named)[name] = formula(right)
    return rates, named


def evaluate_all(named, values):
    """The values of all named formulas, whatever their order in the file."""
    values = dict(values)
    waiting = dict(named)
    while waiting:
        ready = [name for name, tree in waiting.items() if names_in(tree) <= values.keys()]
        if not ready:
            raise Mistake(f"circular or unresolved names: {', '.join(sorted(waiting))}")
        for name in ready:
            values[name] = evaluate(waiting.pop(name), values)
    return values


def check_keys(model):
    for key in model.keys() - TOP_KEYS:
        raise Mistake(f"unknown key '{key}'")
    for table, allowed in TABLE_KEYS.items():
        entries = {"": model.get(table, {})} if table == "run" else model.get(table, {})
        for name, entry in entries.items():
            for key in entry.keys() - allowed:
                raise Mistake(f"unknown key '{key}' in [{table}{name and '.' + name}]")
            if entry.get("direction", "any") not in DIRECTIONS:
                raise Mistake(f"direction '{entry['direction']}' in [{table}.{name}]")
    for key in ("name", "ref", "equations", "initial", "run"):
        if key not in model:
            raise Mistake(f"'{key}' is missing")


def check_model(path):
    model = tomllib.loads(path.read_text())
    check_keys(model)
    rates, named = read_equations(model["equations"])
    parameters = {name: formula(value) for name, value in model.get("parameters", {}).items()}
    initial = {name: formula(value) for name, value in model["initial"].items()}
    constraints, jumps = model.get("constraint", {}), model.get("jump", {})

    groups = [rates.keys(), named.keys(), parameters.keys(), constraints.keys(), {"t", "pi", "e"}, FUNCTIONS.keys()]
    seen = set()
    for group in groups:
        for name in group & seen:
            raise Mistake(f"'{name}' is defined twice or reserved")
        seen |= group
    if rates.keys() != initial.keys():
        raise Mistake(f"states and initial values differ: {', '.join(sorted(rates.keys() ^ initial.keys()))}")

    known = seen - FUNCTIONS.keys()
    formulas = list(rates.values()) + list(named.values())
    formulas += [formula(c["gap"]) for c in constraints.values()]
    formulas += [formula(c["restitution"]) for c in constraints.values() if "restitution" in c]
    for jump in jumps.values():
        formulas += [formula(jump["on"])] + [formula(right) for right in jump["set"].values()]
        for name in jump["set"].keys() - rates.keys():
            raise Mistake(f"a jump sets '{name}', which is no state")
    for section in model.get("section", {}).values():
        if ("every" in section) == ("on" in section):
            raise Mistake("a section has either 'every' or 'on'")
        if section.get("on") not in constraints.keys() | jumps.keys():
            formulas.append(formula(section.get("every", section.get("on"))))
    used = set()
    for tree in formulas:
        used |= names_in(tree)
    for name in used - known:
        raise Mistake(f"unknown name '{name}'")
    for name in (parameters.keys() | constraints.keys()) - used:
        raise Mistake(f"'{name}' is never used")

    values = CONSTANTS | {name: evaluate(tree, CONSTANTS) for name, tree in parameters.items()}
    values |= {name: evaluate(tree, values) for name, tree in initial.items()}
    values |= {"t": float(model["run"].get("from", 0))} | dict.fromkeys(constraints, 0.0)
    values = evaluate_all(named, values)
    for state, tree in rates.items():
        if not math.isfinite(evaluate(tree, values)):
            raise Mistake(f"the rate of '{state}' is not finite at the start")
    for name, constraint in constraints.items():
        # A gap that holds multipliers may need them to be open; only purely geometric gaps can be judged here.
        tree = formula(constraint["gap"])
        if not names_in(tree) & constraints.keys() and evaluate(tree, values) < 0:
            raise Mistake(f"the gap of '{name}' is violated at the start")


def check_readme(folder):
    first = (folder / "model.toml").read_text().splitlines()[0]
    if not first.startswith("# "):
        raise Mistake("model.toml does not begin with its one-line description")
    description = first[2:]
    if len(description) > DESCRIPTION_WIDTH:
        raise Mistake(f"the description is {len(description)} characters long")
    paragraphs = (folder / "README.md").read_text().split("\n\n")
    if not paragraphs[0].startswith("# ") or "\n" in paragraphs[0]:
        raise Mistake("README.md does not begin with a title line")
    if paragraphs[1].split("\n")[0] != description:
        raise Mistake("README.md and model.toml give different descriptions")


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "models"
    chosen = set(sys.argv[2:])
    folders = [f for f in sorted(root.iterdir()) if f.is_dir() and (not chosen or f.name in chosen)]
    mistakes = 0
    for folder in folders:
        for check, target in ((check_model, folder / "model.toml"), (check_readme, folder)):
            try:
                check(target)
            except (Mistake, OSError, tomllib.TOMLDecodeError, ArithmeticError, ValueError, NameError) as error:
                print(f"{folder.name}: {error}")
                mistakes += 1
    print(f"{len(folders)} models, {mistakes} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
