# Spack recipe; see packaging/dependencies.md.
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Solenoid(CMakePackage, CudaPackage):
    """Incompressible viscous flow with exactly divergence-free velocities: Stokes equations on boxes and unions of
    boxes, Raviart-Thomas elements, matrix-free monolithic multigrid, on processors and NVIDIA GPUs."""

    # The recipe builds the checkout that it lies in.
    git = "file://" + ancestor(__file__, 7)

    license("Apache-2.0")

    version("main", branch="main")

    variant("shared", default=False, description="Build a shared library")
    variant(
        "orders_2d",
        default="0,1,2,3,4,5,6,7,8",
        values=[str(k) for k in range(9)],
        multi=True,
        description="Orders k of RT_k in 2D",
    )
    variant(
        "orders_3d",
        default="0,1,2,3,4,5",
        values=[str(k) for k in range(9)],
        multi=True,
        description="Orders k of RT_k in 3D",
    )

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("eigen@3.4", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("fmt@9.1:")
    depends_on("libpng@1.6:")
    depends_on("muparser@2.3.3:")
    depends_on("tomlplusplus@3.3:")
    depends_on("zlib-api")
    depends_on("cuda@12.3:", when="+cuda")
    depends_on("googletest@1.12:", type="test")

    conflicts("%gcc@:11", msg="C++20 as solenoid uses it needs GCC 12")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPU: cuda_arch=80, 90, ...")

    def cmake_args(self):
        args = [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define("SOLENOID_BUILD_TESTS", self.run_tests),
            self.define("SOLENOID_CUDA", self.spec.satisfies("+cuda")),
            self.define("SOLENOID_ORDERS_2D", ";".join(sorted(self.spec.variants["orders_2d"].value))),
            self.define("SOLENOID_ORDERS_3D", ";".join(sorted(self.spec.variants["orders_3d"].value))),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        return args
