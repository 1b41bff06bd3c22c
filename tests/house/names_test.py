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

# Files of a room are compiled in batches: what one of them keeps to itself (types, constants) no other may name alike.
own = collections.defaultdict(set)
for file in sorted(source.rglob("*.cpp")):
    room = file.relative_to(source).parts[0]
    for block in re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", file.read_text(), re.S | re.M):
        names = re.findall(r"^(?:struct|class|enum class|enum) (\w+)(?: final)?(?: : [^{;]*)? \{", block, re.M)
        names += re.findall(r"^using (\w+ = .*);", block, re.M)  # the same thing twice is no harm
        names += re.findall(r"^(?:inline |static )?(?:constexpr|const) [\w:<>, *&]*?\b(\w+)(?:\[\w*\])?(?: = |\{)", block, re.M)
        for name in names:
            own[(room, name)].add(str(file.relative_to(source)))
shared = {key: files for key, files in own.items() if len(files) > 1 and " = " not in key[1]}
for (room, name), files in shared.items():
    print(f"{name} is a name of {' and '.join(sorted(files))}: they may be compiled in one batch")
if len(own) < 300:
    sys.exit("too few names of single files were found: does this test still read the sources?")
sys.exit(1 if twice or shared else 0)
