#!/usr/bin/env python3
"""Write a model file for a Burridge-Knopoff chain of N blocks with free ends.

Usage: burridge_knopoff.py N [--seed S] > chain.toml

Block i hangs on the moving plate by a spring of stiffness 1 and on its neighbours by springs of stiffness al;
for N = 2 this is models/burridge_knopoff. All blocks start at rest and hold; small irregular offsets, the same
for the same seed, keep them from slipping all at once.
"""

import argparse
import random

SPREAD = 0.15  # of the offsets: (1 + 4*al)*SPREAD < 1, so that static friction holds every block at the start


def chain_equations(count):
    lines = []
    for i in range(1, count + 1):
        stretches = [f"y{i}"] + [f"al*(y{i} - y{j})" for j in (i - 1, i + 1) if 1 <= j <= count]
        lines += [f"X{i}' = V{i}", f"V{i}' = {' + '.join(stretches)} - D*sign(V{i}, ph)", f"y{i} = nu*t - X{i}"]
    return lines


def model_text(count, seed):
    offsets = random.Random(seed)
    start = [f"X{i} = {offsets.uniform(-SPREAD, SPREAD):.6f}\nV{i} = 0" for i in range(1, count + 1)]
    equations = "\n".join("  " + line for line in chain_equations(count))
    newline = "\n"
    return f'''# A chain of {count} blocks dragged over a rough floor by springs.
name = "Burridge-Knopoff chain, {count} blocks"
ref  = "Burridge & Knopoff 1967; scripts/burridge_knopoff.py {count} --seed {seed}"

equations = """
{equations}
  D = 1/ph                                    # friction in motion; static friction is 1
"""

[parameters]
nu = 0.1             # speed of the plate that drags
al = 1.2             # stiffness between neighbours / stiffness of a drag spring
ph = 1.25            # static friction / friction in motion

[initial]
{newline.join(start)}

[run]
until = 30
'''


def main():
    parser = argparse.ArgumentParser(description="Write a Burridge-Knopoff chain as a saltus model file.")
    parser.add_argument("count", type=int, metavar="N", help="number of blocks, at least 1")
    parser.add_argument("--seed", type=int, default=1, help="of the irregular start (1)")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error("N must be at least 1")
    print(model_text(arguments.count, arguments.seed), end="")


if __name__ == "__main__":
    main()
