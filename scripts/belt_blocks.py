#!/usr/bin/env python3
"""Write a model file for N blocks on a moving belt, coupled in a row by springs.

Usage: belt_blocks.py N [--seed S] > blocks.toml

Each block has Coulomb friction with the belt, a spring k to the ground and springs kc to its neighbours; one
surface v_i = vd per block, all of which can be slid on at once. Friction differs a little from block to block
and the start is irregular, the same for the same seed.
"""

import random

import row_of_blocks


def blocks_text(count, seed):
    draw = random.Random(seed)
    blocks = range(1, count + 1)
    equations = []
    for i in blocks:
        coupling = "".join(f" + kc*(x{j} - x{i})" for j in row_of_blocks.neighbours(i, count))
        equations += [f"x{i}' = v{i}", f"v{i}' = -k*x{i}{coupling} - F{i}*sign(v{i} - vd)"]
    friction = [f"F{i} = {draw.uniform(0.8, 1.2):.6f}" for i in blocks]
    start = [f"x{i} = {draw.uniform(-0.5, 0.5):.6f}\nv{i} = {draw.uniform(-0.5, 0.5):.6f}" for i in blocks]
    return row_of_blocks.model_text(
        f"{count} blocks on one moving belt, each with its own friction.",
        f"{count} blocks on a belt",
        f"scripts/belt_blocks.py {count} --seed {seed}",
        equations,
        ["vd = 0.2             # speed of the belt",
         "k = 1                # spring to the ground / mass",
         "kc = 0.5             # spring between neighbours / mass",
         *friction],
        start, until=20)


if __name__ == "__main__":
    row_of_blocks.main("Write a row of blocks on a belt as a saltus model file.", blocks_text, "of frictions and start")
