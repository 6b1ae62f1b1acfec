"""Checks that the notebook was saved after a run from top to bottom. A long run executes it again."""
import json
import os
import unittest
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parent.parent / "krrlab.ipynb"


class Notebook(unittest.TestCase):
    def test_notebook(self):
        cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
        self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)))
        namespace = {}
        for cell in cells:
            source = "".join(cell["source"])
            self.assertTrue(cell["outputs"] and all(output["output_type"] != "error" for output in cell["outputs"]),
                            source)
            self.assertLessEqual(max(map(len, source.splitlines())), 120, source)
            code = compile(source, str(NOTEBOOK), "exec")
            if os.environ.get("KRRLAB_LONG"):
                exec(code, namespace)
