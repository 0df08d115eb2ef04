"""
The patch solver in 100 lines
=============================

The heart of the method is the exact solution of a small Stokes problem: on the :math:`2^d` cells around a vertex. This
script builds its matrices from the univariate ones, solves it by fast diagonalisation and the Schur complement, and
compares with a dense solver. It needs numpy only and follows :doc:`/method`, section by section; change it to try ideas.
"""

# %%
# Univariate matrices
# -------------------
# Modes :math:`\psi_j` (orthonormal Legendre polynomials on [0, 1]) and the continuous functions: a hat, k bubbles
# :math:`b_j = \int_0^x \psi_j`, a hat.
import itertools

import numpy as np
from numpy.polynomial import legendre as leg


def modes(k, x, derivative=0):
    """psi_0..psi_k (rows) at the points x."""
    return np.array([
        np.sqrt(2 * j + 1) * 2**derivative * leg.legval(2 * x - 1, leg.legder(np.eye(k + 1)[j], derivative))
        for j in range(k + 1)
    ])


def continuous(k, x):
    """b_0..b_{k+1} (rows) at the points x."""
    bubbles = [
        (leg.legval(2 * x - 1, np.eye(k + 2)[j + 1]) - leg.legval(2 * x - 1, np.eye(k + 2)[j - 1]))
        / (2 * np.sqrt(2 * j + 1)) for j in range(1, k + 1)
    ]
    return np.array([1 - x, *bubbles, x])


def cell_matrices(k):
    """Mass and stiffness of P, divergence, volume part of L^O on the unit interval."""
    x, w = leg.leggauss(k + 3)
    x, w = (x + 1) / 2, w / 2
    psi, dpsi, b = modes(k, x), modes(k, x, 1), continuous(k, x)
    db = np.array([-np.ones_like(x), *psi[1:], np.ones_like(x)])
    return (b * w) @ b.T, (db * w) @ db.T, (psi * w) @ db.T, (dpsi * w) @ dpsi.T


k = 2
n = k + 1
mass, stiffness, divergence, volume = cell_matrices(k)
np.set_printoptions(precision=4, suppress=True, linewidth=100)
print("mass of P\n", mass)
print("divergence\n", divergence)

# %%
# The entries are those of the formulas:
assert np.isclose(mass[1, 1], 1 / (2 * 1 * 5))
assert np.isclose(mass[0, 1], -1 / (4 * np.sqrt(3))) and np.isclose(mass[0, 2], 1 / (12 * np.sqrt(5)))

# %%
# Two cells of a patch
# --------------------
# In each direction a patch has N = 2n modes of O and N - 1 functions of P: normal velocities at its ends are not its
# own. The interior penalty matrix has the whole interior face in the middle and the face form E, with a weight s, at
# both ends: s = 1 inside the domain, 2 at a wall.


def face_form(gamma, v, d):
    """gamma v v^T - (d v^T + v d^T) / 2 for traces v and outward derivatives d."""
    return gamma * np.outer(v, v) - (np.outer(d, v) + np.outer(v, d)) / 2


def patch_matrices(k, s_lower, s_upper):
    n = k + 1
    mass, stiffness, divergence, volume = cell_matrices(k)
    MP, LP = np.zeros((2, 2 * n + 1, 2 * n + 1))
    D = np.zeros((2 * n, 2 * n + 1))
    for cell in (0, n):
        MP[cell:cell + n + 1, cell:cell + n + 1] += mass
        LP[cell:cell + n + 1, cell:cell + n + 1] += stiffness
        D[cell:cell + n, cell:cell + n + 1] += divergence

    gamma = (k + 1) * (k + 2) if k > 0 else 1
    v1, d1 = modes(k, np.array([1.0]))[:, 0], modes(k, np.array([1.0]), 1)[:, 0]
    sign = (-1.0)**np.arange(n)
    v0, d0 = sign * v1, sign * d1  # lower end: the outward derivative has the other sign
    LO = np.kron(np.eye(2), volume)
    jump, mean = np.r_[v1, -v0], np.r_[d1, -d0] / 2
    LO += gamma * np.outer(jump, jump) - np.outer(mean, jump) - np.outer(jump, mean)
    LO[:n, :n] += s_lower * face_form(gamma, v0, d0)
    LO[n:, n:] += s_upper * face_form(gamma, v1, d1)
    inner = slice(1, 2 * n)  # without the hats at the ends
    return MP[inner, inner], LP[inner, inner], D[:, inner], LO


MP, LP, D, LO = patch_matrices(k, 1, 1)

# %%
# The same interior face from two face forms and a coupling of rank 2:
gamma, v1, d1 = (k + 1) * (k + 2), modes(k, np.array([1.0]))[:, 0], modes(k, np.array([1.0]), 1)[:, 0]
coupling = LO[:n, n:]
print("rank of the coupling of two cells:", np.linalg.matrix_rank(coupling))
assert np.allclose(LO[:n, :n], volume + face_form(gamma, v1, d1) + face_form(gamma, *((-1.0)**np.arange(n) * [v1, d1])))

# %%
# The dense patch problem
# -----------------------
# In 2D, unknowns u (P x O), v (O x P), p (O x O); the first factor acts in x. On cells of size h, L is divided by
# :math:`h^2` and D by h; here h = 1.
N = 2 * n
I = np.eye(N)
A0 = np.kron(LP, I) + np.kron(MP, LO)
A1 = np.kron(I, LP) + np.kron(LO, MP)
B0, B1 = np.kron(D, I), np.kron(I, D)
A = np.block([
    [A0, np.zeros_like(A0), -B0.T],
    [np.zeros_like(A1), A1, -B1.T],
    [-B0, -B1, np.zeros((N * N, N * N))],
])
rng = np.random.default_rng(1)
right = rng.standard_normal(len(A))
constant = np.zeros(len(A))
constant[-N * N:].reshape(2, n, 2, n)[:, 0, :, 0] = 1 / 2  # psi_0 in all four cells
right -= constant * (constant @ right)
dense = np.linalg.lstsq(A, right, rcond=1e-12)[0]
print("patch problem:", len(A), "unknowns; the constant pressure is in its kernel:", np.abs(A @ constant).max())

# %%
# Fast diagonalisation and Schur complement
# -----------------------------------------
# Eigenvectors of both univariate problems; pressure and tangential velocity share those of O.


def generalised(L, M):
    root = np.linalg.inv(np.linalg.cholesky(M))
    eigenvalues, vectors = np.linalg.eigh(root @ L @ root.T)
    return eigenvalues, root.T @ vectors


lambda_O, SO = np.linalg.eigh(LO)
lambda_P, SP = generalised(LP, MP)
C = SO.T @ D @ SP
lambda_0 = lambda_P[:, None] + lambda_O[None, :]  # u: P in x, O in y
lambda_1 = lambda_O[:, None] + lambda_P[None, :]

# %%
# S couples along grid lines: the first term in x for each mode in y, the second in y for each mode in x.
S = np.zeros((N, N, N, N))
for j in range(N):
    S[:, j, :, j] += C @ np.diag(1 / lambda_0[:, j]) @ C.T
    S[j, :, j, :] += C @ np.diag(1 / lambda_1[j, :]) @ C.T
S = S.reshape(N * N, N * N)
eigenvalues = np.linalg.eigvalsh(S)
print("eigenvalues of S from", eigenvalues[1], "to", eigenvalues[-1], "and one zero:", eigenvalues[0])

# %%
# The solve: transform, Schur complement (with the constant shifted away), back.
f0, f1, g = np.split(right, [len(A0), len(A0) + len(A1)])
f0 = SP.T @ f0.reshape(N - 1, N) @ SO
f1 = SO.T @ f1.reshape(N, N - 1) @ SP
g = SO.T @ g.reshape(N, N) @ SO
c = (SO.T @ constant[-N * N:].reshape(N, N) @ SO).ravel()
r = -(g + C @ (f0 / lambda_0) + (f1 / lambda_1) @ C.T)
p = np.linalg.solve(S + np.outer(c, c), r.ravel())
p = (p - c * (c @ p)).reshape(N, N)
u0 = (f0 + C.T @ p) / lambda_0
u1 = (f1 + p @ C) / lambda_1
fast = np.r_[(SP @ u0 @ SO.T).ravel(), (SO @ u1 @ SP.T).ravel(), (SO @ p @ SO.T).ravel()]
print("difference from the dense solver:", np.abs(fast - dense).max())
assert np.allclose(fast, dense)

# %%
# Parity
# ------
# Both ends have the same weight, so eigenvectors are even or odd about the vertex. Sorted by parity, S consists of
# :math:`2^d` blocks of :math:`n^d`: here four of 9 x 9, 324 numbers instead of 96 x 96 for the whole patch matrix.
mirror = np.kron(np.eye(2)[::-1], np.diag((-1.0)**np.arange(n)))
parity = np.array([int(np.allclose(mirror @ v, -v)) for v in SO.T])
print("even and odd eigenvectors of O:", np.sum(parity == 0), np.sum(parity == 1))
blocks = S.reshape(N, N, N, N)
for e, f in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
    block = blocks[np.ix_(parity == e[0], parity == e[1], parity == f[0], parity == f[1])]
    if e == f:
        print("block", e, "has the size", block.shape[0] * block.shape[1])
    else:
        assert np.allclose(block, 0)

# %%
# The condition number of S depends on the order hardly at all, so that a few steps of an iteration would do as well as
# the inverse:
for order in range(1, 6):
    MP, LP, D, LO = patch_matrices(order, 2, 2)
    lambda_O, SO = np.linalg.eigh(LO)
    lambda_P, SP = generalised(LP, MP)
    C, N = SO.T @ D @ SP, 2 * (order + 1)
    S = np.zeros((N, N, N, N))
    for j in range(N):
        inner = C @ np.diag(1 / (lambda_P + lambda_O[j])) @ C.T
        S[:, j, :, j] += inner
        S[j, :, j, :] += inner
    eigenvalues = np.linalg.eigvalsh(S.reshape(N * N, N * N))
    print(f"k = {order}: condition number {eigenvalues[-1] / eigenvalues[1]:.2f}")
