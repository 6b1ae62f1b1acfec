"""Builds the wheel (PEP 517), which contains the program. A build needs Go, but no network.

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

#: The earliest time that a zip file can store: 1980-01-01, in seconds since 1970.
ZIP_EPOCH = 315532800

#: Platform tags of wheels, by system and architecture in the terms of Go.
PLATFORMS = {"linux/amd64": "manylinux_2_17_x86_64", "linux/arm64": "manylinux_2_17_aarch64",
             "darwin/amd64": "macosx_12_0_x86_64", "darwin/arm64": "macosx_12_0_arm64"}


def project_field(name):
    """Return a field of the table [project] of pyproject.toml, which is a text or a list of one text.

    The file is searched by a pattern, because Python before 3.11 has no reader of TOML.
    """
    match = re.search(rf'^{name} = \[?"(.*?)"\]?$', (HERE / "pyproject.toml").read_text(), re.M)
    return match[1]


def git_version():
    """Return the version of the checked-out commit, which the Makefile calls VERSION."""
    option_lists = ["--tags", "--match", "v[0-9]*"], ["--always", "--exclude", "*"]
    for options in option_lists if shutil.which("git") else ():
        result = subprocess.run(["git", "-C", str(HERE), "describe", "--dirty", "--abbrev=12", *options],
                                capture_output=True, text=True)
        if result.returncode == 0:
            return result.stdout.strip() if "--tags" in options else "devel-" + result.stdout.strip()
    return "devel-unknown"


def python_version(version):
    """Convert a version of git describe to the form of PEP 440: v1.2.0-3-gabc becomes 1.2.0.post3+gabc."""
    match = re.fullmatch(r"v(\d+(?:\.\d+)*)(?:-?(rc\d+))?(?:-(\d+)-(g\w+))?(-dirty)?", version)
    if not match:
        return "0.dev0+" + ".".join(re.findall(r"[a-z0-9]+", version.lower()))
    local_parts = [part for part in (match[4], "dirty" if match[5] else None) if part]
    post = f".post{match[3]}" if match[3] else ""
    return match[1] + (match[2] or "") + post + ("+" + ".".join(local_parts) if local_parts else "")


def write_wheel(folder, program, tag, version):
    """Write a wheel with the program and the package to the folder, and return the name of the wheel.

    The same sources give the same bytes. tag is the platform tag, and version is in the form of git describe.
    """
    name, version = project_field("name"), python_version(version)
    dist_info = f"{name}-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {project_field('description')}\n"
                f"Requires-Python: {project_field('requires-python')}\nRequires-Dist: {project_field('dependencies')}\n"
                "License: BSD-3-Clause\nClassifier: Typing :: Typed\n"
                "Description-Content-Type: text/markdown\n\n")
    readme = HERE.parent.parent / "docs" / "python.md"
    files = {f"krrlab/{path.name}": path.read_bytes() for path in sorted((HERE / "krrlab").glob("*"))
             if path.suffix in (".py", ".typed")}
    files["krrlab/bin/krrlab"] = Path(program).read_bytes()
    files[f"{dist_info}/METADATA"] = metadata.encode() + readme.read_bytes()
    files[f"{dist_info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: backend.py\nRoot-Is-Purelib: false\n"
                                   f"Tag: py3-none-{tag}\n")
    files[f"{dist_info}/entry_points.txt"] = "[console_scripts]\nkrrlab = krrlab._program:main\n"
    files[f"{dist_info}/LICENSE"] = (HERE.parent.parent / "LICENSE").read_bytes()
    files = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
               for path, data in files.items()}
    record = "".join(f"{path},sha256={digests[path]},{len(data)}\n" for path, data in files.items())
    files[f"{dist_info}/RECORD"] = record.encode() + f"{dist_info}/RECORD,,\n".encode()
    timestamp = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", ZIP_EPOCH)), ZIP_EPOCH))[:6]
    wheel = f"{name}-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, timestamp)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.startswith("krrlab/bin/") else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build the program from the clone, or take $KRRLAB_PROGRAM, and write the wheel (a hook of PEP 517)."""
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
    """Refuse to build a source distribution (a hook of PEP 517)."""
    raise SystemExit("there is no source distribution: the source is the repository, whose wheel has the program")


def main():
    """Write the wheel of a release, as the command line describes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--program", required=True)
    parser.add_argument("--platform", required=True, help="system/architecture of Go, such as linux/amd64")
    parser.add_argument("--version", default=git_version())
    args = parser.parse_args()
    print(write_wheel(args.folder, args.program, PLATFORMS[args.platform], args.version))


if __name__ == "__main__":
    main()
