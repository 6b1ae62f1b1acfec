#!/usr/bin/python3
"""krrlab against NumPy and scikit-learn on MNIST, side by side; `make bench-peers`.

Runs every program once in each repetition, one after the other, with the same n, sigma,
lambda, lambda_p, s and tolerance, and prints the medians over the repetitions:

  krrlab        the binary; random features as NumPy has them, what else its `fit --help`
                knows of (Nystrom, RPCholesky, block PCG, 16-bit tiles), and what it
                chooses itself, s and lambda_p too
  NumPy         krr_numpy.py with random features and with Nystrom
  scikit-learn  krr_sklearn.py --mnist: KernelRidge in float64

and ratios: how many times the seconds and the memory of the first krrlab row a program
takes, and the best krrlab row against each peer. Total is what the program says of itself:
from reading the files to the test error; krrlab's holds a check of the true residual too.

Needs $KRRLAB_DATA/mnist, numpy and scikit-learn; on Debian: apt-get install python3-sklearn
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MNIST = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]

# Rows of krrlab: the name, and flags that a version must know to run it. The first one
# is what ratios are taken to. "half" is the rank: s/2.
KRRLAB = (
    ("krrlab, random features", {"precond": "features", "solver": "pcg", "storage": "float32"}),
    ("krrlab, Nystrom", {"precond": "nystrom", "solver": "pcg", "storage": "float32"}),
    ("krrlab, RPCholesky", {"precond": "rpcholesky", "solver": "pcg", "storage": "float32"}),
    ("krrlab, RPCholesky, half the rank", {"precond": "rpcholesky", "solver": "pcg", "storage": "float32", "rank": "half"}),
    ("krrlab, RPCholesky, block PCG", {"precond": "rpcholesky", "solver": "block-pcg", "storage": "float32"}),
    ("krrlab, RPCholesky, 16-bit tiles", {"precond": "rpcholesky", "solver": "pcg", "storage": "fixed16"}),
    ("krrlab, RPCholesky, block PCG, 16-bit tiles", {"precond": "rpcholesky", "solver": "block-pcg", "storage": "fixed16"}),
    ("krrlab, direct", {"solver": "direct", "storage": "float32"}),
    ("krrlab, its own choice", {"precond": "auto", "solver": "auto"}),
)


def fail(message):
    sys.exit("bench-peers: " + message)


def check(a):
    """Ends the program, with one line, if something is not there."""
    if not os.access(a.krrlab, os.X_OK):
        fail(f"{a.krrlab} is not there: make build")
    root = os.environ.get("KRRLAB_DATA")
    if not root:
        fail("KRRLAB_DATA is not set: it names the folder that holds mnist/ (krrlab data info mnist)")
    for name in MNIST:
        path = os.path.join(root, "mnist", name)
        if not os.path.exists(path) and not os.path.exists(path + ".gz"):
            fail(f"no {path}.gz (krrlab data info mnist)")
    if importlib.util.find_spec("numpy") is None:
        fail("no numpy: apt-get install python3-numpy")


def programs(a):
    """The rows: a name, the command, and whether the program is krrlab."""
    known = subprocess.run([a.krrlab, "fit", "--help"], capture_output=True, text=True).stdout
    common = ["--sigma", str(a.sigma), "--lambda", str(a.ridge)]
    free = [*common, "--n", str(a.n), "--tol", str(a.tol), "--seed", "1"]
    rows = []
    for name, flags in KRRLAB:
        flags = dict(flags)
        rank = max(1, a.features // 2) if flags.pop("rank", None) else a.features
        lacks = [v for v in flags.values() if v not in known]
        if lacks:
            print(f"bench-peers: left out: {name}: this krrlab has no {', '.join(lacks)}", flush=True)
            continue
        if flags.get("precond", "auto") != "auto":
            flags["precond"] += f" features={rank} lambda-p={a.lambda_p}"
        words = [w for k, v in flags.items() for w in ("--" + k, v)]
        rows.append((name, [a.krrlab, "fit", "--data", "mnist", *free, *words], True))
    shared = [*free, "--features", str(a.features), "--lambda-p", str(a.lambda_p)]
    for precond, name in (("features", "NumPy, random features"), ("nystrom", "NumPy, Nystrom")):
        rows.append((name, [sys.executable, os.path.join(HERE, "krr_numpy.py"), *shared, "--precond", precond], False))
    if importlib.util.find_spec("sklearn") is None:
        print("bench-peers: left out: scikit-learn: apt-get install python3-sklearn", flush=True)
    elif available() and 17 * a.n**2 > available():
        print(f"bench-peers: left out: scikit-learn: needs {17 * a.n**2 / 1e9:.1f} GB, {available() / 1e9:.1f} GB are free", flush=True)
    else:
        rows.append(("scikit-learn", [sys.executable, os.path.join(HERE, "krr_sklearn.py"), "--mnist", str(a.n), *common], False))
    return [r for r in rows if not a.only or any(w in r[0] for w in a.only.split(","))]


def available():
    """Bytes of memory free for a new program; None where the system does not say."""
    try:
        with open("/proc/meminfo") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None


def run(name, command, folder):
    """The report of one run, or None with one line that says how it ended."""
    out = os.path.join(folder, "report.json")
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run([*command, "--json", out], capture_output=True, text=True)
    if not os.path.exists(out):
        lines = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()
        print(f"bench-peers: {name} failed: {lines[-1]}", flush=True)
        return None
    with open(out) as f:
        r = json.load(f)
    if done.returncode != 0:
        print(f"bench-peers: {name}: {r.get('status') or 'failed'}: {done.stderr.strip() or 'exit status %d' % done.returncode}", flush=True)
    return r


def summary(name, ours, reports):
    """The medians over the repetitions."""

    def mid(f):
        v = [f(r) for r in reports]
        return None if any(x is None for x in v) else statistics.median(v)

    second = {k: mid(lambda r: r["seconds"].get(k)) for k in ("total", "kernel", "features", "factor", "solve", "predict")}
    steps = mid(lambda r: r.get("iterations")) or None
    ended = {r.get("status") or "solved" for r in reports} - {"converged", "solved"}
    return {
        "name": name, "krrlab": ours, **second, "iterations": steps, "ended": ", ".join(sorted(ended)),
        "iteration": second["solve"] / steps if steps else None,
        "error": mid(lambda r: r.get("test_error")), "bytes": mid(lambda r: r["peak_bytes"]),
    }


def over(x, y):
    return x / y if x and y else None


def table(rows):
    """Cells of the table, the heading first."""
    base = rows[0]
    head = ["program", "total s", "K", "Z", "factor", "iterations", "s/iteration", "predict", "test error", "peak GB",
            "x total", "x iteration", "x memory"]

    def number(v, form):
        return "" if v is None else format(v, form)

    cells = [head]
    for r in rows:
        cells.append([
            r["name"] + (f" ({r['ended']})" if r["ended"] else ""), number(r["total"], ".1f"), number(r["kernel"], ".1f"), number(r["features"], ".1f"),
            number(r["factor"], ".1f"), number(r["iterations"], ".0f"), number(r["iteration"], ".3f"), number(r["predict"], ".1f"),
            number(r["error"], ".2%"), number((r["bytes"] or 0) / 1e9, ".2f"), number(over(r["total"], base["total"]), ".2f"),
            number(over(r["iteration"], base["iteration"]), ".2f"), number(over(r["bytes"], base["bytes"]), ".2f"),
        ])
    return cells


def text(cells):
    wide = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = ["  ".join([row[0].ljust(wide[0])] + [c.rjust(w) for c, w in zip(row[1:], wide[1:])]).rstrip() for row in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]) + "\n"


def markdown(cells):
    rule = ["---"] + ["---:"] * (len(cells[0]) - 1)
    return "".join("| " + " | ".join(row) + " |\n" for row in [cells[0], rule, *cells[1:]])


def ratios(rows):
    """A line for each peer: what its seconds and memory are, in krrlab's."""
    mine = [r for r in rows if r["krrlab"] and not r["ended"]]
    if not mine:
        return ""
    best = min(mine, key=lambda r: r["total"])
    lines = []
    for r in rows:
        for other in [] if r["krrlab"] else dict.fromkeys((mine[0]["name"], best["name"])):
            o = next(m for m in mine if m["name"] == other)
            line = f"{r['name']} takes {over(r['total'], o['total']):.1f} times the seconds"
            if over(r["iteration"], o["iteration"]):
                line += f", {over(r['iteration'], o['iteration']):.1f} times those of an iteration"
            lines.append(line + f" and {over(r['bytes'], o['bytes']):.1f} times the memory of {other}.")
    return "\n".join(lines) + "\n"


def write(folder, name, content):
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "w") as f:
            f.write(content)
    except OSError as e:
        fail(f"cannot write {os.path.join(folder, name)}: {e.strerror}")
    print("wrote", os.path.join(folder, name))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--krrlab", default="bin/krrlab", help="the binary (bin/krrlab)")
    ap.add_argument("--n", type=int, default=20000, help="training points (20000)")
    ap.add_argument("--features", type=int, help="features, or rank, s (n/10)")
    ap.add_argument("--sigma", type=float, default=8.5)
    ap.add_argument("--lambda", dest="ridge", type=float, default=0.01)
    ap.add_argument("--lambda-p", type=float, default=0.1)
    ap.add_argument("--tol", type=float, default=1e-3)
    ap.add_argument("--repeat", type=int, default=1, help="repetitions (1)")
    ap.add_argument("--only", metavar="WORD,...", help="only rows whose name has one of the words")
    ap.add_argument("--dir", default="out", help="where the tables go (out)")
    a = ap.parse_args()
    if a.n < 10 or a.repeat < 1:
        ap.error(f"--n {a.n} --repeat {a.repeat}: want at least 10 and 1")
    a.features = a.features or a.n // 10
    check(a)
    rows = programs(a)
    reports = {name: [] for name, _, _ in rows}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(a.repeat):
            for name, command, _ in rows:
                r = run(name, command, folder)
                if r:
                    reports[name].append(r)
                    print(f"{i + 1}/{a.repeat}  {name}: {r['seconds']['total']:.1f} s", flush=True)
    done = [summary(name, ours, reports[name]) for name, _, ours in rows if reports[name]]
    if not done:
        fail("nothing ran")
    title = f"MNIST, n = {a.n}, s = {a.features}, sigma = {a.sigma:g}, lambda = {a.ridge:g}, lambda_p = {a.lambda_p:g}, tolerance {a.tol:g}, medians of {a.repeat}"
    cells, lines = table(done), ratios(done)
    print("\n" + title + "\n\n" + text(cells) + "\n" + lines)
    write(a.dir, "bench-peers.txt", title + "\n\n" + text(cells) + "\n" + lines)
    write(a.dir, "bench-peers.md", title + "\n\n" + markdown(cells) + "\n" + lines.replace("\n", "\n\n").rstrip() + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
