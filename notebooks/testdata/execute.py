"""Runs a notebook on an installed kernel with Debian's nbclient: execute.py KERNEL FILE [NAME=VALUE ...]."""

import os
import sys

import nbclient
import nbformat

nb = nbformat.read(sys.argv[2], as_version=4)
nbformat.validate(nb)
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
