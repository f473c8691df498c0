#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that are missing for what is asked: build, demo, check, long, bench, docs, lint.
# Usage: scripts/deps.sh build [check …]. Does nothing, and needs no rights, when all are there.
set -eu

build='gcc libc6-dev meson ninja-build pkg-config python3-minimal libxxhash-dev liblz4-dev
	libzstd-dev libhwloc-dev libzmq3-dev libsodium-dev libipmimonitoring-dev libibumad-dev libibmad-dev
	libibverbs-dev libsqlite3-dev libucx-dev libopenmpi-dev opencl-headers libncurses-dev libmicrohttpd-dev'
demo='openmpi-bin lammps lammps-examples'
check="$demo libcmocka-dev libmpich-dev gfortran hpcc netpipe-openmpi python3-mpi4py python3-numpy scalapack-mpi-test
	libgomp1 binutils spin slurmctld slurmd slurm-client munge pocl-opencl-icd ocl-icd-opencl-dev openipmi ibsim-utils libumad2sim0 opensm gnuplot-nox
	python3-pyopencl clblast-tests openssh-server clang libomp-dev libclang-14-dev libopenblas-dev zsh fish environment-modules groff-base python3-pyte
	elfutils gdb python3-venv"
long='chromium chromium-driver prometheus debhelper lintian fakeroot valgrind linux-perf'
bench='openmpi-bin mpich libmpich-dev gnuplot-nox libclang-14-dev libopenblas-dev'
docs='python3-sphinx python3-myst-parser furo weasyprint librsvg2-bin fonts-dejavu-core'
lint='clang clang-format clang-tidy cppcheck'

wanted=''
for what in "$@"; do
	case $what in
	build) wanted="$wanted $build" ;;
	demo) wanted="$wanted $demo" ;;
	check) wanted="$wanted $check" ;;
	long) wanted="$wanted $long" ;;
	bench) wanted="$wanted $bench" ;;
	docs) wanted="$wanted $docs" ;;
	lint) wanted="$wanted $lint" ;;
	*)
		echo "scripts/deps.sh: '$what' is none of build, demo, check, long, bench, docs, lint" >&2
		exit 64
		;;
	esac
done

if ! command -v dpkg-query >/dev/null; then
	echo "This is not Debian: make sure that you have what these packages hold:" $wanted >&2
	exit 0
fi

missing=''
for p in $wanted; do
	case " $missing " in *" $p "*) continue ;; esac
	if [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" != installed ]; then
		missing="$missing $p"
	fi
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	as_root=''
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	as_root='sudo -n'
elif command -v sudo >/dev/null && [ -t 0 ]; then
	as_root='sudo'
else
	echo "Missing packages; have them installed, then run this again: apt-get install$missing" >&2
	exit 1
fi

echo "Installing missing packages:$missing"
log=$(mktemp)
policy=/usr/sbin/policy-rc.d
ours=''
tidy() {
	rm -f "$log"
	[ -z "$ours" ] || $as_root rm -f "$policy"
}
trap tidy EXIT
trap 'exit 1' HUP INT TERM
# The tests start their own servers on loopback: none of a package's services starts here by itself.
if [ ! -e "$policy" ]; then
	ours=1
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	$as_root chmod 755 "$policy"
fi
# An sshd that the tests alone wanted does not start with the machine either.
installed() {
	case "$missing" in
	*openssh-server*) $as_root systemctl disable ssh.service ssh.socket >/dev/null 2>&1 || : ;;
	esac
	exit 0
}
export DEBIAN_FRONTEND=noninteractive
# The lists may be absent (containers) or old: install with those that are there, else update.
if $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -q --no-install-recommends $missing >"$log" 2>&1; then
	installed
fi
if $as_root apt-get update -q >"$log" 2>&1 &&
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -q --no-install-recommends $missing >>"$log" 2>&1; then
	installed
fi
tail -n 20 "$log" >&2
echo "Could not install:$missing. The last lines of apt-get are above." >&2
exit 1
