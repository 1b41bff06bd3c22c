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

TOP_KEYS = {"name", "ref", "equations", "parameters", "initial", "labels", "constraint", "jump", "section", "table",
            "run"}
TABLE_KEYS = {
    "constraint": {"gap", "equals", "restitution", "for"},
    "jump": {"on", "every", "phase", "direction", "when", "set", "for"},
    "section": {"every", "on", "direction", "stop", "for"},
    "table": {"points", "between", "outside"},
    "run": {"from", "until", "tolerance", "engine", "dt"},
}
DIRECTIONS = {"rising", "falling", "any"}
CONSTANTS = {"pi": math.pi, "e": math.e}
DESCRIPTION_WIDTH = 76


def sign(x, hold=1):
    return (x > 0) - (x < 0)


FUNCTIONS = {name: getattr(math, name) for name in
             "sin cos tan asin acos atan atan2 sinh cosh tanh exp expm1 log log1p log2 log10 sqrt cbrt hypot floor ceil".split()}
FUNCTIONS |= {
    "sign": sign, "abs": abs, "min": min, "max": max,
    "unit": lambda first, *others: first / math.hypot(first, *others) if first else 0.0,
    "sat": lambda x, low, high: min(max(x, low), high),
    "step": lambda x: float(x > 0),
    "if_": lambda condition, yes, no: yes if condition else no,
    "round": lambda x: math.floor(x + 0.5),
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


def index_range(text, wholes):
    """`i = 1..N` -> (name, the indices)"""
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(.+?)\s*\.\.\s*(.+?)\s*", text)
    if not match:
        raise Mistake(f"no range of an index: '{text}'")
    first, last = (int(evaluate(formula(end), wholes)) for end in match.groups()[1:])
    return match.group(1), range(first, last + 1)


def closing(text, start):
    """The bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise Mistake(f"brackets in '{text}'")


def write_out(text, wholes, indices):
    """A formula for given indices: sums as sums, conditions on indices decided, x[i-1] as x__2, i as its number."""
    while match := re.search(r"\bsum\s*\(", text):
        end = closing(text, match.end() - 1)
        term, over = text[match.end():end].rsplit(" for ", 1)
        name, values = index_range(over, wholes | indices)
        parts = [f"({write_out(term, wholes, indices | {name: k})})" for k in values]
        text = f"{text[:match.start()]}({' + '.join(parts) or '0'}){text[end + 1:]}"
    for match in list(re.finditer(r"\bif\s*\(", text))[::-1]:
        end = closing(text, match.end() - 1)
        parts, depth = [""], 0
        for c in text[match.end():end]:
            depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(c, 0)
            parts[-1] += c if c != "," or depth else ""
            if c == "," and not depth:
                parts.append("")
        words = set(re.findall(r"[A-Za-z_]\w*", parts[0]))
        if words & indices.keys() and words <= indices.keys() | wholes.keys():
            chosen = parts[1] if evaluate(formula(parts[0]), wholes | indices) else parts[2]
            text = f"{text[:match.start()]}({chosen}){text[end + 1:]}"
    text = re.sub(r"\[([^]]*)\]", lambda m: f"__{int(evaluate(formula(m.group(1)), wholes | indices))}", text)
    return re.sub(r"[A-Za-z_]\w*", lambda m: str(indices.get(m.group(), m.group())), text)


def expand_functions(text, functions):
    """Calls of the model's own functions replaced by their bodies."""
    while match := next((m for m in re.finditer(r"([A-Za-z_]\w*)\s*\(", text) if m.group(1) in functions), None):
        end = closing(text, match.end() - 1)
        arguments, body = functions[match.group(1)]
        given = dict(zip(arguments, text[match.end():end].split(","), strict=True))
        body = re.sub(r"[A-Za-z_]\w*", lambda m: f"({given[m.group()]})" if m.group() in given else m.group(), body)
        text = f"{text[:match.start()]}({body}){text[end + 1:]}"
    return text


def over_range(entries, wholes):
    """Tables with `for` written out, their formulas too."""
    out = {}
    for name, entry in entries.items():
        index, values = index_range(entry["for"], wholes) if "for" in entry else (None, [None])
        for k in values:
            here = {index: k} if index else {}
            put = lambda v: write_out(v, wholes, here) if isinstance(v, str) else v
            copy = {key: put(v) for key, v in entry.items() if key not in ("for", "set", "direction")}
            if "set" in entry:
                copy["set"] = {}
                for key, v in entry["set"].items():
                    free = re.search(r"\[([A-Za-z_]\w*)\]", key)
                    if free and free.group(1) not in here and free.group(1) not in wholes:
                        continue  # all of them: judged with the single ones
                    copy["set"][put(key)] = put(v)
            out[f"{name}__{k}" if index else name] = copy
    return out


def read_equations(text, wholes):
    """-> (rates by state, named formulas by name, functions); formulas as syntax trees, functions as text."""
    lines = []
    for raw in text.splitlines():
        line = raw.split("#")[0].strip()
        if line and (line[0] in "+-*/^" or line.startswith("for ")) and lines:
            lines[-1] += " " + line
        elif line:
            lines.append(line)
    functions, written = {}, []
    for line in lines:
        head = re.fullmatch(r"([A-Za-z_]\w*)\s*\(([^)]*)\)\s*=\s*(.+)", line)
        if head:
            functions[head.group(1)] = ([a.strip() for a in head.group(2).split(",")], head.group(3))
            continue
        over = re.fullmatch(r"(.*[^(]*\S)\s+for\s+([A-Za-z_]\w*\s*=[^()]*)", line)
        index, values = index_range(over.group(2), wholes) if over else (None, [None])
        written += [write_out(over.group(1) if over else line, wholes, {index: k} if index else {}) for k in values]
    rates, named = {}, {}
    for line in written:
        line = expand_functions(line, functions)
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


def table_function(name, entry):
    """A function given by points, straight between them; only values near the start are asked for."""
    points = entry["points"]
    if len(points) < 2 or any(b[0] <= a[0] for a, b in zip(points, points[1:])):
        raise Mistake(f"the points of '{name}' do not increase")

    def value(x):
        x = min(max(x, points[0][0]), points[-1][0])
        (x0, y0), (x1, y1) = next(pair for pair in zip(points, points[1:]) if x <= pair[1][0])
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return value


def check_model(path):
    model = tomllib.loads(path.read_text())
    check_keys(model)
    tables = {name: table_function(name, entry) for name, entry in model.get("table", {}).items()}
    FUNCTIONS.update(tables)
    try:
        check_formulas(model, path.read_text())
    finally:
        for name in tables:
            del FUNCTIONS[name]


def check_formulas(model, text):
    parameters = {name: formula(value) for name, value in model.get("parameters", {}).items()}
    values = evaluate_all(parameters, CONSTANTS)
    rates, named = read_equations(model["equations"], values)
    initial = {}
    for name, value in model["initial"].items():
        free = re.fullmatch(r"(\w+)\[([A-Za-z_]\w*)\]", name)
        for state in [s for s in rates if free and s.startswith(free.group(1) + "__")]:
            initial.setdefault(state, formula(write_out(str(value), values, {free.group(2): int(state.split("__")[1])})))
        if not free:
            initial[write_out(name, values, {})] = formula(value)
    constraints, jumps = (over_range(model.get(table, {}), values) for table in ("constraint", "jump"))

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
    formulas += [formula(c["gap"] if "gap" in c else c["equals"]) for c in constraints.values()]
    formulas += [formula(c["restitution"]) for c in constraints.values() if "restitution" in c]
    for jump in jumps.values():
        formulas += [formula(jump[key]) for key in ("on", "every", "phase", "when") if key in jump]
        formulas += [formula(right) for right in jump["set"].values()]
        for name in jump["set"].keys() - rates.keys():
            raise Mistake(f"a jump sets '{name}', which is no state")
    for section in over_range(model.get("section", {}), values).values():
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
        if len(re.findall(rf"\b{name}\b", text)) < 2 and "__" not in name:
            raise Mistake(f"'{name}' is never used")

    values |= {name: evaluate(tree, values) for name, tree in initial.items()}
    values |= {"t": float(model["run"].get("from", 0))} | dict.fromkeys(constraints, 0.0)
    values = evaluate_all(named, values)
    for state, tree in rates.items():
        if not math.isfinite(evaluate(tree, values)):
            raise Mistake(f"the rate of '{state}' is not finite at the start")
    for name, constraint in constraints.items():
        # A gap that holds multipliers may need them to be open; only purely geometric gaps can be judged here.
        if "equals" in constraint:
            if abs(evaluate(formula(constraint["equals"]), values)) > 1e-9:
                raise Mistake(f"the joint '{name}' is not satisfied at the start")
            continue
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
