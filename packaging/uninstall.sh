#!/bin/sh
# Removes what `make install` has installed, by the list that it has left, and folders that are empty then; of /usr/local not those that it
# has on every system.  uninstall.sh PREFIX [DESTDIR]
set -eu
prefix=${1%/} root=${2-}
list=$root$prefix/share/spillway/installed
if [ ! -r "$list" ]; then
  echo "uninstall: $list is not there: 'make install' has installed nothing to $prefix; name the PREFIX that it had" >&2
  exit 2
fi
files=$(cat "$list")
# The folder may have been moved since. The list is its own last line, which says where that was.
was=$(tail -n 1 "$list")
was=${was%/share/spillway/installed}
echo "$files" | while IFS= read -r file; do rm -f "$root$prefix${file#"$was"}"; done
cd "$root$prefix"

# Of this folder and of those that it is in, up to one that stays.
remove_empty() {
  folder=$1
  while [ "$folder" != . ]; do
    case $prefix/$folder in /usr/local/bin | /usr/local/include | /usr/local/lib | /usr/local/share | /usr/local/share/man) return ;; esac
    rmdir "$folder" 2> /dev/null || return 0
    folder=$(dirname "$folder")
  done
}
echo "$files" | sed 's|/[^/]*$||' | sort -ru | while IFS= read -r folder; do remove_empty "${folder#"$was/"}"; done
