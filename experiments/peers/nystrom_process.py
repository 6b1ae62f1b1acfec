"""M = FF' + lambda I by Nystrom: krrlab fit --precond "process:python3 nystrom_process.py 500" ..."""
import io
import sys

import numpy as np

inp, out = sys.stdin.buffer, sys.stdout.buffer


def send(line, array=None):
    data = io.BytesIO()
    if array is not None:
        np.lib.format.write_array(data, np.ascontiguousarray(array))
    out.write(line.encode() + b"\n" + data.getvalue())
    out.flush()


def receive():  # read_array needs a file, not a pipe
    np.lib.format.read_magic(inp)
    shape, _, dtype = np.lib.format.read_array_header_1_0(inp)
    return np.frombuffer(inp.read(dtype.itemsize * int(np.prod(shape))), dtype).reshape(shape)


n, d, t, lam, seed = map(float, inp.readline().split()[2:])
n, rank = int(n), int(sys.argv[1])
landmarks = np.random.default_rng(int(seed)).choice(n, rank, replace=False)
send("columns", landmarks)
C = receive()  # K(:, landmarks)
W = C[landmarks]
shift = 1e-10 * np.trace(W) - 2 * min(0, np.linalg.eigvalsh(W)[0])  # K may be rounded to float32
F = np.linalg.solve(np.linalg.cholesky(W + shift * np.eye(rank)), C.T).T  # FF' = C W^-1 C'
inner = np.linalg.inv(F.T @ F + lam * np.eye(rank))
send("ready normal")
for line in inp:
    if line.startswith(b"solve"):
        R = receive()
        send("answer", (R - F @ (inner @ (F.T @ R))) / lam)
    else:
        g = np.random.default_rng(int(line.split()[1]))
        x = F @ g.standard_normal(rank) + np.sqrt(lam) * g.standard_normal(n)
        send("answer", x.reshape(n, 1))
