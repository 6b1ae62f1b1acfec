"""Builds the wheel (PEP 517), with the program inside and without a network: Go is all that it needs.

    pip install packaging/python                                    # from a clone
    python3 backend.py FOLDER --program FILE --platform linux/amd64 --version V  # a release
"""
import argparse
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLATFORMS = {"linux/amd64": "manylinux_2_17_x86_64", "linux/arm64": "manylinux_2_17_aarch64",
             "darwin/amd64": "macosx_12_0_x86_64", "darwin/arm64": "macosx_12_0_arm64"}


def field(name):
    """A text, or a list of one text, of the table [project]; Python before 3.11 has no reader of TOML."""
    text = re.search(rf'^{name} = \[?"(.*?)"\]?$', (HERE / "pyproject.toml").read_text(), re.M)
    return text[1]


def git_version():
    """What the Makefile calls VERSION."""
    ways = ["--tags", "--match", "v[0-9]*"], ["--always", "--exclude", "*"]
    for options in ways if shutil.which("git") else ():
        done = subprocess.run(["git", "-C", str(HERE), "describe", "--dirty", "--abbrev=12", *options],
                              capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip() if "--tags" in options else "devel-" + done.stdout.strip()
    return "devel-unknown"


def python_version(version):
    """A version of git describe in the form of PEP 440: v1.2.0-3-gabc is 1.2.0.post3+gabc."""
    m = re.fullmatch(r"v(\d+(?:\.\d+)*)(?:-?(rc\d+))?(?:-(\d+)-(g\w+))?(-dirty)?", version)
    if not m:
        return "0.dev0+" + ".".join(re.findall(r"[a-z0-9]+", version.lower()))
    local = [part for part in (m[4], "dirty" if m[5] else None) if part]
    return m[1] + (m[2] or "") + (f".post{m[3]}" if m[3] else "") + ("+" + ".".join(local) if local else "")


def write_wheel(folder, program, tag, version):
    """Write the wheel, of the same bytes for the same sources, and return its name."""
    name, version = field("name"), python_version(version)
    info = f"{name}-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {field('description')}\n"
                f"Requires-Python: {field('requires-python')}\nRequires-Dist: {field('dependencies')}\n"
                "License: BSD-3-Clause\nClassifier: Typing :: Typed\n"
                "Description-Content-Type: text/markdown\n\n")
    page = HERE.parent.parent / "docs" / "python.md"
    files = {f"krrlab/{path.name}": path.read_bytes() for path in sorted((HERE / "krrlab").glob("*"))
             if path.suffix in (".py", ".typed")}
    files["krrlab/bin/krrlab"] = Path(program).read_bytes()
    files[f"{info}/METADATA"] = metadata.encode() + page.read_bytes()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: backend.py\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    files[f"{info}/entry_points.txt"] = "[console_scripts]\nkrrlab = krrlab._program:main\n"
    files[f"{info}/LICENSE"] = (HERE.parent.parent / "LICENSE").read_bytes()
    files = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    digest = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
              for path, data in files.items()}
    files[f"{info}/RECORD"] = "".join(f"{path},sha256={digest[path]},{len(data)}\n" for path, data in files.items()
                                      ).encode() + f"{info}/RECORD,,\n".encode()
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 315532800)), 315532800))[:6]  # zip begins in 1980
    wheel = f"{name}-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.startswith("krrlab/bin/") else 0o100644) << 16
            out.writestr(entry, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: build the program from the clone, or take $KRRLAB_PROGRAM, and write the wheel."""
    system = platform.system().lower()
    target = f"{system}/{ {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine())}"
    if target not in PLATFORMS:
        raise SystemExit(f"no wheel for {target}, only for {', '.join(PLATFORMS)}")
    with tempfile.TemporaryDirectory() as folder:
        program, version = os.environ.get("KRRLAB_PROGRAM"), git_version()
        if not program:
            if not shutil.which("go"):
                raise SystemExit("krrlab: to build from a clone needs Go (https://go.dev/dl, the version in go.mod or "
                                 "later) in the path; a wheel of a release needs nothing")
            program = os.path.join(folder, "krrlab")
            subprocess.run(["go", "build", "-trimpath", "-ldflags", f"-s -w -X main.tag={version}", "-o", program,
                            "./krrlab/cmd/krrlab"], cwd=HERE.parent.parent, check=True,
                           env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""})
        return write_wheel(wheel_directory, program, PLATFORMS[target], version)


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("there is no source distribution: the source is the repository, whose wheel has the program")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--program", required=True)
    p.add_argument("--platform", required=True, help="system/architecture of Go, such as linux/amd64")
    p.add_argument("--version", default=git_version())
    a = p.parse_args()
    print(write_wheel(a.folder, a.program, PLATFORMS[a.platform], a.version))


if __name__ == "__main__":
    main()
