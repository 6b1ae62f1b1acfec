"""The headline profile of a testbed: python3 profile.py testbed.jsonl [level [n [names]]]

level 0: residual 1e-2, 1: 1e-3, ...; names: a regular expression for the preconditioners to judge. Problems count on
which all of them were run."""
import json
import re
import sys
from collections import defaultdict

import numpy as np

# make bench-plan tunes auto on these problems, so that no choice is judged by them alone
FITTED = ("abalone usps mnist ijcnn1 adult covtype-sample covtype7-sample cal-housing protein pairs curve clusters "
          "cal-laplacian").split()
level = int(sys.argv[2]) if len(sys.argv) > 2 else 1
size = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
wanted = re.compile(sys.argv[4] if len(sys.argv) > 4 else "(?!field)")
runs = defaultdict(list)
for line in open(sys.argv[1]):
    r = json.loads(line)
    if r["n"] > size or 2 * r["n"] < size or not wanted.match(r["preconditioner"]):
        continue
    product, reached = 2 * r["n"] ** 2, r["iterations_to"]
    work = np.inf
    if not r.get("failed") and len(reached) > level:
        work = (r.get("build_flops", 0) + reached[level] * (product + r.get("apply_flops", 0))) / product
        if r["preconditioner"] != "none" and not r.get("apply_flops"):
            work = np.nan
    runs[(r["problem"], r["lambda"]), r["preconditioner"], r["rank"]].append(work)

cost = defaultdict(dict)  # problem -> preconditioner -> least over the ranks of the median of the draws
for (problem, name, _), draws in runs.items():
    median = sorted(draws)[(len(draws) - 1) // 2]
    cost[problem][name] = min(median, cost[problem].get(name, np.inf))
names = list(dict.fromkeys(name for of in cost.values() for name in of))
cost = {problem: of for problem, of in cost.items() if len(of) == len(names)}
table = np.array([[of.get(name, np.nan) for name in names] for of in cost.values()])
ratio = table / np.nanmin(table, axis=1, keepdims=True)
fitted = np.array([problem in FITTED for problem, _ in cost])
for title, part in ("", fitted | True), (" that auto was fitted to", fitted), (" kept aside", ~fitted):
    print(f"{part.sum()} problems{title}; share solved with at most 1, 2, 5, 10 times the least work, and at all")
    for name, r in zip(names, ratio[part].T if part.any() else ()):
        print(f"{name:28s}", *(f"{100 * np.mean(r <= most):5.0f} %" for most in (1, 2, 5, 10, 1e300)))
