#!/usr/bin/env python3
"""Mutate models and run them, with limits on time and memory.

Usage: run_fuzz.py SALTUS SOURCE_DIR FINDINGS_DIR [SECONDS [SEED]]

Every run must end with an exit status of the contract, 0 to 4, and say why where it is not 0; one that takes long must
end when it is asked to. One that crashes, takes too much memory, does not stop or blames saltus is kept in FINDINGS_DIR as
a file to repeat it with. Exit status 1 if there is any. Slow ones are kept too, to be looked at.
"""

import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

MOST_SECONDS = 10
SECONDS_TO_STOP = 3
MOST_WAITING = 100  # times those, where the machine is busy
MOST_BYTES = 2 << 30
NUMBERS = ["0", "-1", "1e-300", "1e300", "1e17", "-0.0", "0.5", "1/3", "2*pi", "1e-12", "3"]
WORDS = ["sign(", "abs(", "if(x > 0, ", "mod(t, ", "floor(", "min(", "max(", "sqrt(", "exp(", ")", ", ", "'", "^", "-", "*",
         "/", "t", "v", "x", "y", " and ", "\n", '"', "=", "#", "1e308", "log(", "1/0"]


def mutated(text, others, rng):
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(6)
        if kind == 0:  # another number in the place of one
            digits = [i for i, c in enumerate(text) if c.isdigit()]
            if digits:
                at = rng.choice(digits)
                text = text[:at] + rng.choice(NUMBERS) + text[at + 1:]
        elif kind == 1:
            text = text[:at] + rng.choice(WORDS) + text[at:]
        elif kind == 2:
            text = text[:at] + text[at + rng.randrange(20):]
        elif kind == 3:  # swap two names
            a, b = rng.choice("xyvtuqrF"), rng.choice("xyvtuqrF")
            text = text.replace(a, b, 1)
        elif kind == 4:
            other = rng.choice(others)
            line = rng.choice(other.splitlines() or [""])
            text = text[:at] + line + "\n" + text[at:]
        else:
            lines = text.splitlines()
            rng.shuffle(lines)
            text = "\n".join(lines)
    return text


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (3 * MOST_SECONDS, 3 * MOST_SECONDS))


def seconds_of(process):
    """What it has used of a processor: on a machine with others the clock says nothing."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def said_within(run, seconds):
    """Waits until it ends; None if it has used more than that, or is stuck without using anything."""
    end = time.monotonic() + MOST_WAITING * seconds
    most = seconds_of(run) + seconds
    while True:
        try:
            return run.communicate(timeout=0.2)[0]
        except subprocess.TimeoutExpired:
            if seconds_of(run) > most or time.monotonic() > end:
                return None


def trouble(command):
    """What is wrong with a run, and whether it was slow: a long run is no mistake if it ends when it is asked to."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=limits) as run:
        said = said_within(run, MOST_SECONDS)
        slow = said is None
        if slow:
            run.terminate()
            said = said_within(run, SECONDS_TO_STOP)
            if said is None:
                run.kill()
                run.communicate()
                return f"does not stop within {SECONDS_TO_STOP} s", slow
    if run.returncode not in ((130,) if slow else (0, 1, 2, 3, 4)):
        return f"status {run.returncode}", slow
    if run.returncode != 0 and not said:
        return "no word", slow
    if b"mistake in saltus" in said or b"not enough memory" in said:
        return said.decode(errors="replace"), slow
    return "", slow


def main():
    saltus, source, findings = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 60
    seed = int(sys.argv[5]) if len(sys.argv) > 5 else int(time.time())
    rng = random.Random(seed)
    seeds = [p.read_text() for folder in ("models/*/model.toml", "tests/reference/cases/*.toml", "tests/fuzz/corpus/*.toml")
             for p in sorted(source.glob(folder))]
    findings.mkdir(parents=True, exist_ok=True)
    model = findings / "model.toml"
    end, runs, found, slow = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < end:
        model.write_text(mutated(rng.choice(seeds), seeds, rng), errors="replace")
        options = rng.choice([[], ["--engine", "step"], ["--flow", "stiff"], ["--zeno", "stop"]])
        until = [] if "until" in model.read_text() else ["--until", "3"]
        command = [saltus, "run", str(model), *until, "--json", *options]
        runs += 1
        what, was_slow = trouble(command)
        slow += was_slow
        found += bool(what)
        if what or was_slow:
            kept = findings / f"{'run' if what else 'slow'}-{seed}-{runs}.toml"
            kept.write_text(model.read_text())
            print(f"{kept}: {what or 'slow'}\n  {' '.join(command).replace(str(model), str(kept))}", flush=True)
    model.unlink(missing_ok=True)
    print(f"{runs} runs of mutated models (seed {seed}): {found} findings, {slow} slow ones")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
