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


notebook = nbformat.read(sys.argv[2], as_version=4)
nbformat.validate(notebook)
if sys.argv[1] == "gophernotes":
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = without_must(cell.source)
for cell in notebook.cells:
    if "parameters" in cell.metadata.get("tags", []):
        cell.source = "\n".join([cell.source] + sys.argv[3:])
client = nbclient.NotebookClient(notebook, kernel_name=sys.argv[1], timeout=600, resources={"metadata": {"path": os.path.dirname(sys.argv[2])}})
client.execute()
nbformat.validate(notebook)
output_count = sum(len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code")
if output_count == 0:
    sys.exit("no cell showed anything")
print("%d outputs" % output_count)
