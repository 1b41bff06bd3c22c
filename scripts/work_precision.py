#!/usr/bin/env python3
"""Draw error against time of saltus, Boost.odeint, CVODE and Taylor series by hand: docs/work_precision.svg.

Usage: work_precision.py [FLOW_BENCH] [-o FILE] [--repetitions N]
       work_precision.py --from RESULTS.json [-o FILE]

FLOW_BENCH is the built benchmark (build/bench/bench/flow_bench). It is run N times with its rows interleaved and
the smallest time of each row counts; --keep FILE keeps its results, --from draws kept ones.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
METHODS = {"saltus": "#0072B2", "interpreted": "#56B4E9", "odeint": "#D55E00", "cvode": "#009E73", "taylor": "#777777"}
TITLES = {"saltus": "saltus, machine code", "interpreted": "saltus, interpreted", "odeint": "Boost.odeint, dopri5",
          "cvode": "CVODE, Adams", "taylor": "Taylor series by hand"}
PANELS = {"friction": ("Dry friction, 1000 periods, 4002 events", "largest error of an event's time"),
          "drill": ("Drill string, 972 cycles of stick and slip", "largest error of an event's time"),
          "pendulum": ("Pendulum, t = 100, no events", "error of the final state")}


def run_bench(program, repetitions):
    command = [program, "--benchmark_filter=" + "|".join(PANELS), "--benchmark_format=json",
               "--benchmark_min_time=0.02", f"--benchmark_repetitions={repetitions}",
               "--benchmark_enable_random_interleaving=true"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def read_rows(results):
    """(problem, method) -> {digits of the tolerance: (error, seconds)}"""
    unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
    rows = {}
    for row in json.loads(results)["benchmarks"]:
        if row.get("run_type") != "iteration":
            continue
        *name, digits = row["run_name"].replace("_", "/").split("/")
        seconds = row["cpu_time"] * unit[row["time_unit"]]
        points = rows.setdefault(tuple(name), {})
        known = points.get(int(digits), (None, seconds))[1]
        if math.isfinite(row["error"]):  # infinite where events are missing
            points[int(digits)] = (row["error"], min(seconds, known))
    return rows


def gnuplot_script(rows, picture):
    problems = [p for p in PANELS if any(problem == p for problem, _ in rows)]
    lines = [f"set terminal svg size {420 * len(problems)},420 font 'Helvetica,13' background '#ffffff'",
             f"set output '{picture}'",
             f"set multiplot layout 1,{len(problems)}",
             "set logscale xy", "set format xy '10^{%T}'", "set grid lc rgb '#dddddd'",
             "unset mxtics", "unset mytics",
             "set xrange [*:*] reverse", "set ylabel 'CPU time / s'", "set key bottom right reverse Left"]
    for problem in problems:
        title, error = PANELS[problem]
        lines += [f'set title "{title}"', f'set xlabel "{error}"']
        curves = []
        for method, colour in METHODS.items():
            points = sorted(rows.get((problem, method), {}).items())
            if not points:
                continue
            lines.append(f"${method} << END")
            lines += [f"{e:.6g} {s:.6g}" for _, (e, s) in points]
            lines.append("END")
            curves.append(f"${method} with linespoints lw 2 pt 7 ps 0.5 lc rgb '{colour}' title '{TITLES[method]}'")
        seconds = [s for (p, _), points in rows.items() if p == problem for _, s in points.values()]
        lines.append(f"set yrange [{min(seconds) / 60:.3g}:{max(seconds) * 1.5:.3g}]")
        lines.append("plot " + ", ".join(curves))
    return "\n".join(lines + ["unset multiplot", ""])


def main():
    parser = argparse.ArgumentParser(description="Draw error against time of saltus and its rivals.")
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/bench/bench/flow_bench"), metavar="FLOW_BENCH")
    parser.add_argument("-o", dest="picture", default=str(ROOT / "docs/work_precision.svg"), metavar="FILE")
    parser.add_argument("--repetitions", type=int, default=9, metavar="N")
    parser.add_argument("--keep", metavar="FILE", help="keep the benchmark's results")
    parser.add_argument("--from", dest="results", metavar="FILE", help="draw kept results")
    arguments = parser.parse_args()
    if arguments.results:
        results = Path(arguments.results).read_text()
    elif Path(arguments.program).exists():
        results = run_bench(arguments.program, arguments.repetitions)
    else:
        sys.exit(f"there is no {arguments.program}; 'make bench' builds it")
    if arguments.keep:
        Path(arguments.keep).write_text(results)
    subprocess.run(["gnuplot"], input=gnuplot_script(read_rows(results), arguments.picture), text=True, check=True)


if __name__ == "__main__":
    main()
