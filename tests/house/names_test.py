#!/usr/bin/env python3
"""No two structures of namespace saltus have one name: they would share their destructors, silently."""
import collections, pathlib, re, sys

source = pathlib.Path(sys.argv[1])
places = collections.defaultdict(set)
for file in sorted(source.rglob("*.[ch]pp")):
    text = re.sub(r"^namespace \{.*?^\}  // namespace$", "", file.read_text(), flags=re.S | re.M)
    space = re.search(r"^namespace (saltus[\w:]*) \{", text, re.M)
    for found in re.finditer(r"^(?:struct|class|enum class|enum) (\w+)(?: final)?(?: : [^{;]*)? \{", text, re.M):
        places[(space.group(1) if space else "", found.group(1))].add(str(file.relative_to(source)))
twice = {name: files for name, files in places.items() if len(files) > 1}
for (space, name), files in twice.items():
    print(f"{space}::{name} is defined in {' and '.join(sorted(files))}: give one of them another name")
if len(places) < 100:
    sys.exit("too few structures were found: does this test still read the sources?")
sys.exit(1 if twice else 0)
