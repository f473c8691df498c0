# SPDX-License-Identifier: BSD-3-Clause
# Spack's recipe: `spack repo create REPO`, this file as REPO/packages/hale/package.py, `spack repo add REPO`,
# `make dist`, and `spack install hale` where HALE_DIST names the tarball that has come of it.
import os

from spack.package import *


class Hale(MesonPackage):
    """Runs parallel programs through faults: checkpoints, migration, spare nodes; MPI, OpenMP, OpenCL."""

    homepage = "https://localhost/hale"
    url = "file://" + os.environ.get("HALE_DIST", "/nowhere/hale-0.1.0.tar.gz")
    license("BSD-3-Clause")

    version("0.1.0")

    variant("ucx", default=True, description="Jobs over several nodes by UCX")
    variant("top", default=True, description="hale top")
    variant("web", default=True, description="hale web")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("openmpi@4.1")  # its header: the ABI that programs are built for
    depends_on("xxhash")
    depends_on("lz4")
    depends_on("zstd")
    depends_on("hwloc")
    depends_on("libzmq")
    depends_on("libsodium libs=static")
    depends_on("ucx", when="+ucx")
    depends_on("ncurses", when="+top")
    depends_on("libmicrohttpd", when="+web")

    def meson_args(self):
        return ["-Dtests=disabled", "-Dwerror=false", "-Dopenmpi_include=" + self.spec["openmpi"].prefix.include]
