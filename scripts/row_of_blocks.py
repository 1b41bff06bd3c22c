"""What the scripts that write rows of blocks share: the parts of a model file, and the command line."""

import argparse


def model_text(comment, name, ref, equations, parameters, initial, until):
    """A model file; equations, parameters and initial values are lists of lines."""
    lines = [f"# {comment}", f'name = "{name}"', f'ref  = "{ref}"', "", 'equations = """']
    lines += ["  " + line for line in equations]
    lines += ['"""', "", "[parameters]", *parameters, "", "[initial]", *initial, "", "[run]", f"until = {until}"]
    return "\n".join(lines) + "\n"


def neighbours(i, count):
    return [j for j in (i - 1, i + 1) if 1 <= j <= count]


def main(description, text_of, seed_of):
    """Reads N and --seed from the command line and prints text_of(N, seed)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("count", type=int, metavar="N", help="number of blocks, at least 1")
    parser.add_argument("--seed", type=int, default=1, help=f"{seed_of} (1)")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error("N must be at least 1")
    print(text_of(arguments.count, arguments.seed), end="")
