#!/usr/bin/env python3
"""Write a model file for N blocks on a moving belt, coupled in a row by springs.

Usage: belt_blocks.py N [--seed S] > blocks.toml

Each block has Coulomb friction with the belt, a spring k to the ground and springs kc to its neighbours; one
surface v_i = vd per block, all of which can be slid on at once. Friction differs a little from block to block
and the start is irregular, the same for the same seed.
"""

import argparse
import random


def block_equations(count):
    lines = []
    for i in range(1, count + 1):
        coupling = "".join(f" + kc*(x{j} - x{i})" for j in (i - 1, i + 1) if 1 <= j <= count)
        lines += [f"x{i}' = v{i}", f"v{i}' = -k*x{i}{coupling} - F{i}*sign(v{i} - vd)"]
    return lines


def model_text(count, seed):
    draw = random.Random(seed)
    friction = [f"F{i} = {draw.uniform(0.8, 1.2):.6f}" for i in range(1, count + 1)]
    start = [f"x{i} = {draw.uniform(-0.5, 0.5):.6f}\nv{i} = {draw.uniform(-0.5, 0.5):.6f}" for i in range(1, count + 1)]
    equations = "\n".join("  " + line for line in block_equations(count))
    newline = "\n"
    return f'''# {count} blocks on one moving belt, each with its own friction.
name = "{count} blocks on a belt"
ref  = "scripts/belt_blocks.py {count} --seed {seed}"

equations = """
{equations}
"""

[parameters]
vd = 0.2             # speed of the belt
k = 1                # spring to the ground / mass
kc = 0.5             # spring between neighbours / mass
{newline.join(friction)}

[initial]
{newline.join(start)}

[run]
until = 20
'''


def main():
    parser = argparse.ArgumentParser(description="Write a row of blocks on a belt as a saltus model file.")
    parser.add_argument("count", type=int, metavar="N", help="number of blocks, at least 1")
    parser.add_argument("--seed", type=int, default=1, help="of frictions and start (1)")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error("N must be at least 1")
    print(model_text(arguments.count, arguments.seed), end="")


if __name__ == "__main__":
    main()
