#!/usr/bin/env bash
# Fetches and unpacks a Debian source package by name, without touching the machine's own apt set-up.
#   scripts/fetch-source.sh PACKAGE FOLDER
# prints the path of the unpacked source, FOLDER/PACKAGE-VERSION. Needs no privileges. A source that is
# there already is not fetched again. The repositories are those that the machine's packages come from.
set -euo pipefail
export LC_ALL=C  # what dpkg-source says is read below, and it speaks the user's language otherwise
[ $# -eq 2 ] || { echo "usage: fetch-source.sh PACKAGE FOLDER" >&2; exit 2; }
package=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)

unpacked=$folder/.$package.unpacked
# Prints the path of a source that is there.
kept() {
  local name
  name=$(cat "$unpacked" 2>/dev/null) && [ -n "$name" ] && [ -d "$folder/$name" ] && echo "$folder/$name"
}
kept && exit

apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
exec 9>"$apt/lock"
flock 9
kept && exit  # somebody else has fetched it meanwhile

{
  repositories=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
    awk '$4 == "Debian" && $3 == "main" {print $1, $2, $3}' | sort -u)
  [ -n "$repositories" ] || repositories="http://deb.debian.org/debian $(. /etc/os-release && echo "$VERSION_CODENAME") main"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  sed "s|^|deb-src $([ -f $keyring ] && echo "[signed-by=$keyring]") |" <<<"$repositories"
} >"$apt/sources.list"

options=(
  -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives"
  -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 -o APT::Get::List-Cleanup=false
)
log=$apt/$package.log
# Apt unpacks nothing over what is there, were it half a source that an interrupted run has left.
work=$folder/.$package.fetched
rm -rf "$work"
mkdir "$work"
# The newest version may be announced before (or be gone sooner than) a mirror has it: then the next one.
fetch() {
  apt-get "${options[@]}" update
  local version
  for version in $(apt-cache "${options[@]}" --only-source showsrc "$package" | sed -n 's/^Version: //p' | sort -Vru); do
    (cd "$work" && apt-get "${options[@]}" --only-source source "$package=$version") && return
  done
  # Says what is wrong with the name, or with the network.
  (cd "$work" && apt-get "${options[@]}" source "$package")
}
fetch >"$log" 2>&1 || {
  echo "fetch-source: cannot fetch the source of $package; $log says why: $(grep -m1 '^E:' "$log" || tail -n1 "$log")" >&2
  exit 1
}
source=$(sed -n 's/^dpkg-source: info: extracting .* in \(.*\)$/\1/p' "$log" | tail -n1)
[ -n "$source" ] && [ -d "$work/$source" ] || { echo "fetch-source: $log does not say where $package was unpacked" >&2; exit 1; }
rm -rf "${folder:?}/$source"
mv "$work/$source" "$folder"
rm -rf "$work"
echo "$source" >"$unpacked"
echo "$folder/$source"
