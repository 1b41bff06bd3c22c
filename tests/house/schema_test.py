#!/usr/bin/env python3
"""The schema of model files for editors: it accepts the gallery, refuses what the reader refuses, and knows its keys.

Usage: schema_test.py SOURCE
"""

import json
import re
import sys
import tomllib
from pathlib import Path

source = Path(sys.argv[1])
schema = json.loads((source / "editors/model.schema.json").read_text())
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool}


def is_a(value, kind):
    if kind in ("number", "integer"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def trouble(value, rule, place="model"):
    """The first violation of the part of JSON Schema (draft 7) that this schema uses; "" if there is none."""
    if "$ref" in rule:
        rule = schema["definitions"][rule["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in rule and all(trouble(value, r, place) for r in rule["anyOf"]):
        return f"{place}: fits nothing of {rule['anyOf']}"
    if "type" in rule and not is_a(value, rule["type"]):
        return f"{place}: not of type {rule['type']}"
    if "enum" in rule and value not in rule["enum"]:
        return f"{place}: not one of {rule['enum']}"
    if "pattern" in rule and not re.search(rule["pattern"], value):
        return f"{place}: does not match {rule['pattern']}"
    if "exclusiveMinimum" in rule and not value > rule["exclusiveMinimum"]:
        return f"{place}: too small"
    if isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
            return f"{place}: wrong number of items"
        return next((t for v in value if (t := trouble(v, rule.get("items", {}), place))), "")
    if not isinstance(value, dict):
        return ""
    lacking = [k for k in rule.get("required", []) if k not in value]
    if lacking:
        return f"{place}: lacks {lacking}"
    others = rule.get("additionalProperties", True)
    for key, part in value.items():
        known = rule.get("properties", {}).get(key, others)
        if known is False:
            return f"{place}: unknown key {key}"
        if known is not True and (found := trouble(part, known, f"{place}.{key}")):
            return found
    return ""


models = sorted(source.glob("models/*/model.toml"))
assert len(models) > 40
for model in models:
    assert not (found := trouble(tomllib.loads(model.read_text()), schema)), (model, found)

ball = {"equations": "q' = v", "constraint": {"N": {"gap": "q", "restitution": 0.8}}}
assert not trouble(ball, schema)
for wrong in ({"name": "x"}, {**ball, "initals": {}}, {**ball, "constraint": {"N": {"gpa": "q"}}}, {**ball, "parameters": {"a": True}},
              {**ball, "section": {"s": {"on": "q", "stop": "yes"}}}, {**ball, "run": {"engine": "both"}},
              {**ball, "jump": {"j": {"on": "q"}}}, {**ball, "table": {"r": {"points": [[1, 2]]}}}):
    assert trouble(wrong, schema), wrong

# The keys that the reader of model files allows, in src/model/read*.cpp.
parts = {"the file": schema} | {f"[{k}]": v.get("additionalProperties", v) if k not in ("run", "mechanics") else v
                                for k, v in schema["properties"].items() if k in ("constraint", "jump", "section", "table", "run", "mechanics")}
parts["a parameter"] = schema["definitions"]["values"]["anyOf"][2]
known = {name: set(rule["properties"]) for name, rule in parts.items()}
read = [set(re.findall(r'"([\w-]+)"', keys)) for file in sorted(source.glob("src/model/read*.cpp"))
        for keys in re.findall(r"allow\(\s*\w+,\s*\{([^}]*)\}", file.read_text())]
assert len(read) >= len(known), "does this test still find the keys of the reader?"
for keys in read:
    nearest = min(known, key=lambda name: len(known[name] ^ keys))
    assert known[nearest] == keys, (f"editors/model.schema.json, {nearest}: lacks {sorted(keys - known[nearest])}, "
                                    f"and the reader does not know {sorted(known[nearest] - keys)}")
