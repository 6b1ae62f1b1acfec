"""Runs a notebook on an installed kernel with Debian's nbclient: execute.py KERNEL FILE [NAME=VALUE ...]."""

import os
import re
import sys

import nbclient
import nbformat



def without_must(source):
    """Go code without Must, which only krrlab's kernel has: each call becomes a statement before the line that it is in."""
    count = 0
    while calls := list(re.finditer(r"\bMust\(", source)):
        start, end = calls[-1].span()  # the last call has no other one inside
        depth, stop = 1, end
        while depth:
            depth += {"(": 1, ")": -1}.get(source[stop], 0)
            stop += 1
        line = source.rfind("\n", 0, start) + 1
        indent = re.match(r"\s*", source[line:]).group()
        value = "must%d" % count
        source = (source[:line] + "%s%s, err%d := %s\n%sif err%d != nil {\n%s\tpanic(err%d)\n%s}\n" % (
            indent, value, count, source[end:stop - 1], indent, count, indent, count, indent)
            + source[line:start] + value + source[stop:])
        count += 1
    return source


nb = nbformat.read(sys.argv[2], as_version=4)
nbformat.validate(nb)
if sys.argv[1] == "gophernotes":
    for c in nb.cells:
        if c.cell_type == "code":
            c.source = without_must(c.source)
for c in nb.cells:
    if "parameters" in c.metadata.get("tags", []):
        c.source = "\n".join([c.source] + sys.argv[3:])
client = nbclient.NotebookClient(nb, kernel_name=sys.argv[1], timeout=600, resources={"metadata": {"path": os.path.dirname(sys.argv[2])}})
client.execute()
nbformat.validate(nb)
shown = sum(len(c.outputs) for c in nb.cells if c.cell_type == "code")
if shown == 0:
    sys.exit("no cell showed anything")
print("%d outputs" % shown)
