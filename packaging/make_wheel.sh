#!/bin/sh
# Makes the Python wheel, which brings the library along: build/packages/*.whl.  make_wheel.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")/.." && pwd)
work=$build/wheel
rm -rf "$work"
for part in kv kv_dev; do cmake --install "$build" --strip --component $part --prefix "$work/prefix" > /dev/null; done
cp -r "$here/bindings/python" "$work/source"  # a build leaves things beside the sources
cp "$here/LICENSE" "$here/NOTICE" "$work/source"
rm -f "$build"/packages/*.whl  # of another version: pip would be given both
LDFLAGS=-Wl,-s SPILLWAY_PREFIX=$work/prefix /usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --no-index --disable-pip-version-check \
  --wheel-dir "$build/packages" "$work/source"
rm -rf "$work"
ls "$build"/packages/*.whl
