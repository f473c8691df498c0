#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: built, looked at by lintian, installed on a root of their own, used by an ordinary user, removed
without traces. With HALE_LONG=1; HALE_DEBS names a folder with packages that are built already."""

from lib import *

# In a mount namespace: this machine's root with a layer above it that takes all that is written.
FRESH = r"""
set -e
mount -t tmpfs -o size=800m tmpfs "$1"
mkdir "$1/up" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount --rbind /sys "$1/root/sys"
mount -t proc proc "$1/root/proc"
mount -t tmpfs tmpfs "$1/root/run"
mount -t tmpfs -o mode=1777 tmpfs "$1/root/tmp"
mkdir "$1/root/tmp/debs"
cp "$2"/*.deb "$1/root/tmp/debs"
cp "$3" "$4" "$1/root/tmp"
chmod 644 "$1/root/tmp"/*.sh
exec chroot "$1/root" sh "/tmp/$(basename "$3")"
"""

INSIDE = r"""
set -e
cd /tmp
all() { # where packages put things: who works beside this test does so elsewhere
	find /etc /usr /opt /srv /var/lib -xdev -path /var/lib/dpkg -prune -o -print | sort
}
all >before
dpkg -i debs/hale_*.deb debs/libftb0_*.deb debs/hale-dev_*.deb debs/hale-doc_*.deb
su nobody -s /bin/sh -c "HOME=/tmp/user sh /tmp/user.sh"
dpkg -P hale-doc hale-dev hale libftb0
all >after
diff before after
echo "no traces"
"""

USER = r"""
set -e
unset XDG_STATE_HOME TMPDIR
mkdir /tmp/user
cd /tmp/user
cat >a.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 30; i++) {
		MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		usleep(100000);
	}
	printf("rank %d sum %d\n", rank, sum);
	return MPI_Finalize();
}
END
mpicc.openmpi a.c
hale run -n 2 --ckpt-every 200ms --inject kill:rank=1,at-ckpt=2 ./a.out
pkg-config --libs hale ftb
man -w hale hale-run hale-ckpt
test -e /usr/share/bash-completion/completions/hale
"""

MAINTAINER = "hpc@example.org"


@test
def packages_install_work_and_leave_without_traces(s):
    if not LONG:
        skip("a whole build: with HALE_LONG=1")
    for program in "dpkg-buildpackage", "dh", "lintian", "unshare":
        have(program)
    if os.getuid() != 0:
        skip("needs root for a root of its own")
    debs = os.environ.get("HALE_DEBS")
    if not debs:
        debs = s.path("debs")
        r = s.run("sh", "-c", f"cd {ROOT} && scripts/deb.sh {debs}", limit=3600, env={"DEBEMAIL": MAINTAINER})
        expect(r.status == 0, r)
    names = [os.path.basename(x).split("_")[0] for x in glob.glob(os.path.join(debs, "*.deb"))]
    expect({"hale", "libftb0", "hale-dev", "hale-doc", "hale-dbgsym", "libftb0-dbgsym"} <= set(names), names)
    r = s.run("lintian", "--allow-root", "--fail-on", "error", *glob.glob(os.path.join(debs, "*.changes")), env={"TMPDIR": s.dir})
    expect(r.status == 0, r)
    os.mkdir(s.path("fresh"))
    r = s.run("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", s.write("fresh.sh", FRESH), s.path("fresh"),
              debs, s.write("inside.sh", INSIDE), s.write("user.sh", USER))
    expect(r.status == 0 and r.out.rstrip().endswith("no traces"), r)
    expect("all ranks run again" in r.err and sorted(re.findall(r"rank \d sum \d+", r.out)) == ["rank 0 sum 58", "rank 1 sum 58"], r)
    expect("-lhale -lftb" in r.out and "/man1/hale-ckpt.1" in r.out, r)


@test
def the_files_that_are_packaged_are_those_that_make_install_puts_in_place(s):
    """Each folder below the prefix is in one of the lists. And nothing of them, but what debuggers read, knows the
    folder that it was built in: two builds are the same, and no library is looked for there."""
    have("meson")
    to = s.path("installed")
    r = s.run("/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", to)
    expect(r.status == 0, r)
    lists = ""
    for path in glob.glob(os.path.join(ROOT, "debian/*.install")):
        with open(path) as f:
            lists += f.read()
    wanted = [re.compile(re.escape(x.split()[0]).replace(r"\*", "[^/]*") + "(/|$)") for x in lists.splitlines()]
    for d, _, names in os.walk(to):
        for name in names:
            with open(os.path.join(d, name), "rb") as f:
                expect("/lib/debug/" in d or BUILD.encode() not in f.read(), "knows the build folder", d, name)
            path = "usr/" + re.sub(r"^lib/(?!systemd)", "lib/triplet/", os.path.relpath(os.path.join(d, name), to).split("local/", 1)[1])
            expect(path.startswith("usr/lib/triplet/debug/") or any(w.match(path) for w in wanted), "in no package", path)


main()
