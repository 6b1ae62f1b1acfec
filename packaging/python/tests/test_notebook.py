"""The notebook was run from top to bottom; a long run does it again."""
import json
import os
import unittest
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parent.parent / "krrlab.ipynb"


class Notebook(unittest.TestCase):
    def test_notebook(self):
        cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
        self.assertEqual([c["execution_count"] for c in cells], list(range(1, len(cells) + 1)))
        names = {}
        for c in cells:
            source = "".join(c["source"])
            self.assertTrue(c["outputs"] and all(o["output_type"] != "error" for o in c["outputs"]), source)
            self.assertLessEqual(max(map(len, source.splitlines())), 120, source)
            code = compile(source, str(NOTEBOOK), "exec")
            if os.environ.get("KRRLAB_LONG"):
                exec(code, names)
