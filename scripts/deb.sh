#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: deb.sh FOLDER: Debian packages of what is committed, into that folder
# Whoever builds packages maintains them: DEBFULLNAME and DEBEMAIL, as Debian's own tools know them, are named in them.
set -eu
mkdir -p "$1"
to=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
mkdir "$work/hale-$version"
git archive HEAD | tar -x -C "$work/hale-$version"
if [ -n "${DEBEMAIL:-}" ]; then
	sed -i "s/The Hale authors <hale@localhost>/${DEBFULLNAME:-The Hale authors} <$DEBEMAIL>/" \
		"$work/hale-$version/debian/control" "$work/hale-$version/debian/changelog"
fi
(cd "$work/hale-$version" && dpkg-buildpackage -us -uc >"$work/log" 2>&1) || { tail -n 40 "$work/log"; exit 1; }
rm -rf "$work/hale-$version" "$work/log"
mv "$work"/* "$to"/
ls "$to"
