"""Tests of the wheel: equal bytes in two builds, a digest for every file, and use with NumPy alone."""
import base64
import csv
import hashlib
import importlib.util
import os
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("backend", HERE / "backend.py")
backend = importlib.util.module_from_spec(spec)
spec.loader.exec_module(backend)
FIT = """
import sys
sys.modules.update(sklearn=None, pandas=None, scipy=None)
import krrlab, numpy as np
assert krrlab.program().endswith("bin/krrlab"), krrlab.program()
x = np.linspace(0, 6, 40)[:, None]
m = krrlab.KernelRidge(lam=1e-3).fit(x, np.sin(x[:, 0]))
assert m.score(x, np.sin(x[:, 0])) > 0.99 and m.get_params()["lam"] == 1e-3
c = krrlab.KernelRidgeClassifier().set_params(lam=0.1).fit(x, x[:, 0] > 3)
assert c.score(x, x[:, 0] > 3) > 0.9
assert repr(m) == "KernelRidge(lam=0.001)", m
rows = krrlab.compare(x, np.sin(x[:, 0]), "gaussian sigma=1", 0.1, kinds=["nystrom"])
assert [row["name"] for row in rows] == ["none", "nystrom"], rows
"""


class Wheel(unittest.TestCase):
    def test_version(self):
        for version, expected in [("v1.2.0", "1.2.0"), ("v1.2.0-rc1", "1.2.0rc1"),
                                  ("v1.2.0-3-gabc", "1.2.0.post3+gabc"),
                                  ("v1.2.0-dirty", "1.2.0+dirty"), ("devel-24fa3cc1-dirty",
                                                                    "0.dev0+devel.24fa3cc1.dirty")]:
            self.assertEqual(backend.python_version(version), expected)

    def test_without_go(self):
        with unittest.mock.patch.dict(os.environ, {"PATH": ""}), tempfile.TemporaryDirectory() as folder:
            os.environ.pop("KRRLAB_PROGRAM", None)
            with self.assertRaisesRegex(SystemExit, "needs Go.*a wheel of a release needs nothing"):
                backend.build_wheel(folder)

    def test_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"  # calls the program under test
            program.write_text(f"#!/bin/sh\nexec '{os.environ['KRRLAB']}' \"$@\"\n")
            wheels = [Path(folder) / str(index) for index in range(2)]
            for index in range(2):
                wheels[index].mkdir()
                wheels[index] /= backend.write_wheel(wheels[index], program, "manylinux_2_17_x86_64", "v1.2.0")
            self.assertEqual(wheels[0].name, "krrlab-1.2.0-py3-none-manylinux_2_17_x86_64.whl")
            self.assertEqual(wheels[0].read_bytes(), wheels[1].read_bytes())
            with zipfile.ZipFile(wheels[0]) as archive:
                rows = list(csv.reader(archive.read("krrlab-1.2.0.dist-info/RECORD").decode().splitlines()))
                self.assertEqual([row[0] for row in rows], archive.namelist())
                for name, digest, size in rows[:-1]:
                    data = archive.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), ("sha256=" + expected, len(data)))
                self.assertTrue((archive.getinfo("krrlab/bin/krrlab").external_attr >> 16) & stat.S_IXUSR)
                modules = {path.name for path in (HERE / "krrlab").glob("*.py")}
                self.assertLessEqual({f"krrlab/{name}" for name in modules}, set(archive.namelist()))
                archive.extractall(Path(folder) / "site")
            (Path(folder) / "site/krrlab/bin/krrlab").chmod(0o755)
            env = {**os.environ, "PYTHONPATH": str(Path(folder) / "site")}
            del env["KRRLAB"]
            subprocess.run([sys.executable, "-B", "-c", FIT], check=True, env=env, cwd=folder)
            if os.environ.get("KRRLAB_LONG"):
                self.install(folder, program, env)

    def install(self, folder, program, env):
        """Install with pip from the clone and from the wheel, without an index, and fit a model."""
        result = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", f"{folder}/venv"],
                                capture_output=True, text=True)
        if result.returncode:
            self.skipTest("apt-get install python3-venv: " + result.stdout)
        del env["PYTHONPATH"]
        wheel = next(Path(folder).glob("0/*.whl"))
        for source in str(HERE), str(wheel):
            subprocess.run([f"{folder}/venv/bin/pip", "install", "-q", "--no-index", "--force-reinstall",
                            "--no-deps", source], check=True, env={**env, "KRRLAB_PROGRAM": str(program)})
            subprocess.run([f"{folder}/venv/bin/python", "-c", FIT], check=True, env=env, cwd=folder)
        subprocess.run([f"{folder}/venv/bin/krrlab", "version"], check=True, env=env)
