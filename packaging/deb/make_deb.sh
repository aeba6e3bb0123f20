#!/bin/sh
# Makes the .deb packages of a build: build/packages/*.deb.  make_deb.sh BUILD
set -eu
umask 022  # folders of packages are for others, whoever makes them
packages=$1/packages
rm -rf "$packages"/*.deb "$packages/_CPack_Packages"
(cd "$1" && cpack --config CPackConfig.cmake) > "$1/make_deb.log" 2>&1 || { cat "$1/make_deb.log" >&2; exit 1; }
rm -rf "$packages/_CPack_Packages"
ls "$packages"/*.deb
