"""solenoid's operator and multigrid preconditioner in the Krylov methods of scipy and, if it is there, of PETSc.

A regularised lid-driven cavity. The matrix is never formed: A and M are functions on vectors that scipy and PETSc call.
"""

import numpy as np
import scipy.sparse.linalg
import solenoid as so

mesh = so.Mesh.box(cells=(1, 1), refine=5)
problem = so.Problem(mesh, order=2, velocity={"ymax": ["16*x^2*(1-x)^2", 0]})

# One linear system behind all three: A x = b, and M close to the inverse of A. In double precision M is linear up to
# rounding, as plain GMRES wants it; with "mixed" (the default) it is faster and as good down to about 1e-6.
options = {"device": "cpu", "precision": "double"}
system = so.LinearSystem(problem, **options)
A = system.operator()
M = system.preconditioner()
b = system.load()


def with_scipy() -> np.ndarray:
    """GMRES of scipy. It measures the preconditioned residual, as left preconditioning has it."""
    residuals = []
    x, status = scipy.sparse.linalg.gmres(A, b, M=M, rtol=1e-10, callback=residuals.append, callback_type="pr_norm")
    print(f"scipy: {len(residuals)} iterations, {'converged' if status == 0 else 'not converged'}")
    return x


def with_petsc() -> np.ndarray:
    """GMRES of PETSc. A is a shell matrix and M a shell preconditioner; both work on PETSc's arrays where they lie."""
    from petsc4py import PETSc

    class Matrix:
        def mult(self, mat, x, y):
            A.matvec(x.getArray(readonly=True), out=y.getArray())

    class Preconditioner:
        def apply(self, pc, r, z):
            M.matvec(r.getArray(readonly=True), out=z.getArray())

    matrix = PETSc.Mat().createPython(A.shape, Matrix())
    matrix.setUp()
    ksp = PETSc.KSP().create()
    ksp.setOperators(matrix)
    ksp.setType("gmres")
    ksp.setTolerances(rtol=1e-10)
    ksp.pc.setType("python")
    ksp.pc.setPythonContext(Preconditioner())
    right, x = PETSc.Vec().createWithArray(b), matrix.createVecRight()
    ksp.solve(right, x)
    print(f"PETSc: {ksp.its} iterations, {'converged' if ksp.reason > 0 else 'not converged'}")
    return x.getArray().copy()


def main() -> None:
    flow = system.solution(with_scipy())
    ours = so.solve(problem, rtol=1e-10, **options)
    centre = [0.5, 0.5]
    print(f"velocity in the centre: {flow.velocity(centre)} with scipy, {ours.velocity(centre)} with so.solve()")
    try:
        import petsc4py  # noqa: F401
    except ImportError:
        print("petsc4py is not installed: PETSc is left out")
        return
    print(f"{system.solution(with_petsc()).velocity(centre)} with PETSc")


if __name__ == "__main__":
    main()
