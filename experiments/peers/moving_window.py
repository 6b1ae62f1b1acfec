#!/usr/bin/python3
"""Two common methods for many points in space, for comparison with krrlab: simple kriging in a moving window of the
nearest neighbors, and an exact fit to a sample. The error is measured on held-out points.

Both predict mean + k_z^T (K + lambda*I)^-1 (y - mean), with the n' nearest training points of z, or with a sample of n'
points. The kernels are gaussian and laplacian, as in krr_sklearn.py.

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
    """Returns the kernel matrix of the rows of a and b, for each index of their leading dimensions."""
    differences = [a[..., :, None, c] - b[..., None, :, c] for c in range(a.shape[-1])]
    if name == "gaussian":
        return np.exp(-sum(d * d for d in differences) / (2 * sigma * sigma))
    return np.exp(-sum(abs(d) for d in differences) / sigma)


def window(name, sigma, lam, x, y, z, neighbors, block=500):
    """Returns the predictions at z, each from its nearest training points."""
    _, near = scipy.spatial.cKDTree(x).query(z, neighbors)
    mean, predictions = y.mean(), np.empty(len(z))
    for i in range(0, len(z), block):
        rows = near[i:i + block]
        points = x[rows]
        k = kernel(name, sigma, points, points) + lam * np.eye(neighbors)
        cross = kernel(name, sigma, z[i:i + block, None, :], points)[:, 0]
        coefs = np.linalg.solve(k, (y[rows] - mean)[:, :, None])[:, :, 0]
        predictions[i:i + block] = mean + (cross * coefs).sum(1)
    return predictions


def sample(name, sigma, lam, x, y, z, size, block=2000):
    """Returns the predictions at z of an exact fit to a random sample of the training points."""
    rows = np.random.default_rng(3).permutation(len(y))[:size]
    x, y = x[rows], y[rows]
    mean = y.mean()
    k = np.empty((len(y), len(y)), order="F")
    for i in range(0, len(y), block):
        k[:, i:i + block] = kernel(name, sigma, x, x[i:i + block])
    k[np.diag_indices(len(y))] += lam
    coefs = scipy.linalg.cho_solve(scipy.linalg.cho_factor(k, lower=True, overwrite_a=True), y - mean)
    predictions = np.empty(len(z))
    for i in range(0, len(z), block):
        predictions[i:i + block] = mean + kernel(name, sigma, z[i:i + block], x) @ coefs
    return predictions


def project(train, test):
    """Projects longitude and latitude in degrees to kilometers in a plane around the mean of the training points."""
    rad = np.pi / 180

    def unit(degrees):
        lon, lat = degrees[:, 0] * rad, degrees[:, 1] * rad
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], 1)

    mean = unit(train).sum(0)
    lon0, lat0 = np.arctan2(mean[1], mean[0]), np.arcsin(mean[2] / np.linalg.norm(mean))

    def to_plane(degrees):
        lon, lat = degrees[:, 0] * rad - lon0, degrees[:, 1] * rad
        factor = 6371.0088 * np.sqrt(2 / (1 + np.sin(lat0) * np.sin(lat) + np.cos(lat0) * np.cos(lat) * np.cos(lon)))
        return np.stack([factor * np.cos(lat) * np.sin(lon),
                         factor * (np.cos(lat0) * np.sin(lat) - np.sin(lat0) * np.cos(lat) * np.cos(lon))], 1)

    return to_plane(train), to_plane(test)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--kernel", default="gaussian", choices=("gaussian", "laplacian"))
    parser.add_argument("--sigma", type=float, required=True)
    parser.add_argument("--lambda", type=float, required=True, dest="lam")
    parser.add_argument("--window", type=int, default=100, help="neighbors; 0 leaves it out")
    parser.add_argument("--sample", type=int, default=20000, help="points; 0 leaves it out")
    parser.add_argument("--tests", type=int, default=None, help="only the first held-out points")
    parser.add_argument("--coordinates", default="plane", choices=("plane", "lonlat"))
    args = parser.parse_args()
    with np.load(args.data) as file:
        x, y, z, answers = (file[k].astype(float) for k in ("x_train", "y_train", "x_test", "y_test"))
    z, answers = z[:args.tests], answers[:args.tests]
    if args.coordinates == "lonlat":
        x, z = project(x, z)
    for what, predict, size in (("window", window, args.window), ("sample", sample, min(args.sample, len(y)))):
        if size > 0:
            start = time.process_time()
            errors = predict(args.kernel, args.sigma, args.lam, x, y, z, size) - answers
            print(f"{what} of {size}: RMSE {np.sqrt((errors * errors).mean()):.5g} on {len(z)} points, "
                  f"{time.process_time() - start:.1f} processor seconds")


if __name__ == "__main__":
    main()
