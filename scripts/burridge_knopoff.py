#!/usr/bin/env python3
"""Write a model file for a Burridge-Knopoff chain of N blocks with free ends.

Usage: burridge_knopoff.py N [--seed S] > chain.toml

Block i hangs on the moving plate by a spring of stiffness 1 and on its neighbours by springs of stiffness al;
for N = 2 this is models/burridge_knopoff. All blocks start at rest and hold; small irregular offsets, the same
for the same seed, keep them from slipping all at once.
"""

import random

import row_of_blocks

SPREAD = 0.15  # of the offsets: (1 + 4*al)*SPREAD < 1, so that static friction holds every block at the start


def chain_text(count, seed):
    offsets = random.Random(seed)
    blocks = range(1, count + 1)
    equations = []
    for i in blocks:
        stretches = [f"y{i}"] + [f"al*(y{i} - y{j})" for j in row_of_blocks.neighbours(i, count)]
        equations += [f"X{i}' = V{i}", f"V{i}' = {' + '.join(stretches)} - D*sign(V{i}, ph)", f"y{i} = nu*t - X{i}"]
    equations.append("D = 1/ph                                    # friction in motion; static friction is 1")
    return row_of_blocks.model_text(
        f"A chain of {count} blocks dragged over a rough floor by springs.",
        f"Burridge-Knopoff chain, {count} blocks",
        f"Burridge & Knopoff 1967; scripts/burridge_knopoff.py {count} --seed {seed}",
        equations,
        ["nu = 0.1             # speed of the plate that drags",
         "al = 1.2             # stiffness between neighbours / stiffness of a drag spring",
         "ph = 1.25            # static friction / friction in motion"],
        [f"X{i} = {offsets.uniform(-SPREAD, SPREAD):.6f}\nV{i} = 0" for i in blocks], until=30)


if __name__ == "__main__":
    row_of_blocks.main("Write a Burridge-Knopoff chain as a saltus model file.", chain_text, "of the irregular start")
