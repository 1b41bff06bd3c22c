#!/usr/bin/env python3
"""Runs the time-stepping engine on the cases of check.py, at its own accuracy.

    check_step.py path/to/saltus [case ...]        every case with adaptive steps and with 4000 steps

What a case says of ends, events and states must come out within the accuracy of the steps. Where events accumulate, those closer
together than a step may be one event that slides or closes. Cases in SHORT are known to fall short: they must, or leave the list.
"""
import glob, json, os, subprocess, sys, tomllib

import check

ADAPTIVE, FIXED, STEPS = 1e-4, 1e-4, 4000
SHORT = {("redundant_friction_network_239", "adaptive"), ("redundant_friction_network_239", "fixed"),  # a release that another
         # distribution of forces undoes within a step
         ("pulse_whose_flanks_overflow", "fixed")}  # 4000 steps are longer than the pulse is wide
check.FINE["chatter"] = ("chatter", "slide", "close", "mode")


def start_time(file, spec):
    args = spec.get("args", [])
    if "--from" in args:
        return float(args[args.index("--from") + 1])
    return float(tomllib.load(open(file, "rb")).get("run", {}).get("from", 0))


def run(saltus, file, spec, more, accuracy):
    spec = dict(spec, tolerance=max(spec["tolerance"], accuracy))
    given = [a for a in spec.get("args", []) if a not in ("--flow", "stiff")]
    engine = [] if "--engine" in given else ["--engine", "step"]
    if "--dt" in given:
        more = []
    command = [saltus, "run", file, "--until", repr(spec["until"]), "--json", "-q"] + given + engine + more
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return check.complaint(spec, json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return "no answer in 20 s"
    except (json.JSONDecodeError, KeyError, TypeError) as e:
        return f"exit {done.returncode}, {type(e).__name__} {e}: {done.stderr.strip()[:300]}"


def main():
    saltus, files = sys.argv[1], sys.argv[2:]
    here = os.path.dirname(os.path.abspath(__file__))
    files = files or sorted(glob.glob(os.path.join(here, "cases", "*.toml")) + glob.glob(os.path.join(here, "..", "found", "*.toml")))
    short = {}
    for file in files:
        spec = json.load(open(file[:-5] + ".json"))
        dt = (spec["until"] - start_time(file, spec)) / STEPS
        for name, more, accuracy in (("adaptive", ["--tolerance", "1e-9"], ADAPTIVE), ("fixed", ["--dt", repr(dt)], FIXED)):
            what = run(saltus, file, spec, more, accuracy)
            if what:
                short[spec["id"], name] = what
    wrong = 0
    for case in sorted(set(short) | (SHORT if not sys.argv[2:] else set())):
        known = case in SHORT and case in short
        wrong += not known
        print(f"{', '.join(case)}{' (known)' if known else ''}: {short.get(case, 'holds now: take it off the list')}")
    print(f"{len(files) - len({case for case, _ in short})} of {len(files)} cases hold")
    return min(wrong, 100)


if __name__ == "__main__":
    sys.exit(main())
