#!/bin/sh
# Removes what `make install` has installed, by the list that it has left, and folders that are empty then.  uninstall.sh PREFIX [DESTDIR]
set -eu
prefix=$1 root=${2-}
list=$root$prefix/share/spillway/installed
if [ ! -r "$list" ]; then
  echo "uninstall: $list is not there: 'make install' has installed nothing to $prefix; name the PREFIX that it had" >&2
  exit 2
fi
files=$(cat "$list")
echo "$files" | while IFS= read -r file; do rm -f "$root$file"; done
cd "$root$prefix"
echo "$files" | sed 's|/[^/]*$||' | sort -ru | while IFS= read -r folder; do
  rmdir -p ".${folder#"$prefix"}" 2> /dev/null || true  # up to one that has something
done
