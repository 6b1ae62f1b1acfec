#!/usr/bin/python3
"""The usual answers for many points in space, for comparison with krrlab: simple kriging in a moving window of the
nearest neighbors, and an exact fit to a sample. The error is measured on held-out points.

Both predict mean + k_z^T (K + lambda*I)^-1 (y - mean), with the n' nearest training points of z, or a sample of n'
points. Kernels as in krr_sklearn.py: gaussian and laplacian.

  moving_window.py data.npz --kernel gaussian --sigma 0.1 --lambda 0.01 --window 100 --sample 20000

data.npz has x_train, y_train, x_test, y_test. --coordinates lonlat projects longitude and latitude as krrlab fit --space does
(Lambert azimuthal equal-area, km, around the spherical mean). It prints errors and processor seconds.

Needs numpy and scipy; on Debian: apt-get install python3-scipy
"""

import argparse
import time

import numpy as np
import scipy.linalg
import scipy.spatial


def kernel(name, sigma, a, b):
    differences = [a[..., :, None, c] - b[..., None, :, c] for c in range(a.shape[-1])]
    if name == "gaussian":
        return np.exp(-sum(d * d for d in differences) / (2 * sigma * sigma))
    return np.exp(-sum(abs(d) for d in differences) / sigma)


def window(name, sigma, lam, x, y, z, neighbors, block=500):
    _, near = scipy.spatial.cKDTree(x).query(z, neighbors)
    mean, out = y.mean(), np.empty(len(z))
    for i in range(0, len(z), block):
        part = near[i:i + block]
        points = x[part]
        k = kernel(name, sigma, points, points) + lam * np.eye(neighbors)
        cross = kernel(name, sigma, z[i:i + block, None, :], points)[:, 0]
        c = np.linalg.solve(k, (y[part] - mean)[:, :, None])[:, :, 0]
        out[i:i + block] = mean + (cross * c).sum(1)
    return out


def sample(name, sigma, lam, x, y, z, size, block=2000):
    rows = np.random.default_rng(3).permutation(len(y))[:size]
    x, y = x[rows], y[rows]
    mean = y.mean()
    k = np.empty((len(y), len(y)), order="F")
    for i in range(0, len(y), block):
        k[:, i:i + block] = kernel(name, sigma, x, x[i:i + block])
    k[np.diag_indices(len(y))] += lam
    c = scipy.linalg.cho_solve(scipy.linalg.cho_factor(k, lower=True, overwrite_a=True), y - mean)
    out = np.empty(len(z))
    for i in range(0, len(z), block):
        out[i:i + block] = mean + kernel(name, sigma, z[i:i + block], x) @ c
    return out


def project(train, test):
    rad = np.pi / 180
    unit = lambda p: np.stack([np.cos(p[:, 1] * rad) * np.cos(p[:, 0] * rad), np.cos(p[:, 1] * rad) * np.sin(p[:, 0] * rad),
                               np.sin(p[:, 1] * rad)], 1)
    m = unit(train).sum(0)
    lon0, lat0 = np.arctan2(m[1], m[0]), np.arcsin(m[2] / np.linalg.norm(m))
    def to_plane(p):
        lon, lat = p[:, 0] * rad - lon0, p[:, 1] * rad
        f = 6371.0088 * np.sqrt(2 / (1 + np.sin(lat0) * np.sin(lat) + np.cos(lat0) * np.cos(lat) * np.cos(lon)))
        return np.stack([f * np.cos(lat) * np.sin(lon),
                         f * (np.cos(lat0) * np.sin(lat) - np.sin(lat0) * np.cos(lat) * np.cos(lon))], 1)
    return to_plane(train), to_plane(test)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("--kernel", default="gaussian", choices=("gaussian", "laplacian"))
    p.add_argument("--sigma", type=float, required=True)
    p.add_argument("--lambda", type=float, required=True, dest="lam")
    p.add_argument("--window", type=int, default=100, help="neighbors; 0 leaves it out")
    p.add_argument("--sample", type=int, default=20000, help="points; 0 leaves it out")
    p.add_argument("--tests", type=int, default=None, help="only the first held-out points")
    p.add_argument("--coordinates", default="plane", choices=("plane", "lonlat"))
    a = p.parse_args()
    with np.load(a.data) as f:
        x, y, z, answers = (f[k].astype(float) for k in ("x_train", "y_train", "x_test", "y_test"))
    z, answers = z[:a.tests], answers[:a.tests]
    if a.coordinates == "lonlat":
        x, z = project(x, z)
    for what, f, size in (("window", window, a.window), ("sample", sample, min(a.sample, len(y)))):
        if size > 0:
            start = time.process_time()
            e = f(a.kernel, a.sigma, a.lam, x, y, z, size) - answers
            print(f"{what} of {size}: RMSE {np.sqrt((e * e).mean()):.5g} on {len(z)} points, "
                  f"{time.process_time() - start:.1f} processor seconds")


if __name__ == "__main__":
    main()
