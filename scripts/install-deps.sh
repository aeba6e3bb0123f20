#!/usr/bin/env bash
# Installs, by package name, what Spillway needs on Debian 12.  install-deps.sh [--list] [GROUP]...
#
#   product   to build it and its packages for Debian, and to demonstrate it
#   python    to build its wheel
#   java      to build its jar
#   tests     what only its tests, its benchmarks, and who changes it need
#
# Without a group: all. Does nothing (and needs no privileges) when all packages are there. --list: only says which these are.
set -euo pipefail

declare -A groups=(
  [product]="
    make cmake ninja-build ca-certificates pkg-config
    clang-19 lld-19 llvm-19-dev
    libjemalloc-dev libxxhash-dev systemtap-sdt-dev nlohmann-json3-dev libssl-dev libpmemobj-dev
    python3 dpkg-dev file tcl8.6"
  [python]="gcc python3-dev python3-pip python3-setuptools python3-wheel"
  [java]="default-jdk-headless maven"
  [tests]="
    git libgtest-dev llvm-19-tools libclang-rt-19-dev libomp-19-dev libomp5-19 clang-format-19 clang-tidy-19 ccache
    openssl debootstrap groff-base gdb bpftrace python3-numpy xz-utils csmith libcsmith-dev tcl8.6-dev zlib1g-dev libevent-dev
    fio libcuckoo-dev librocksdb-dev libboost-fiber1.74-dev valgrind golang-go
    memcached libmemcached-tools libsasl2-modules redis-server redis-tools nutcracker
    python3-pymemcache python3-pylibmc python3-redis iproute2 curl netcat-openbsd
    libpmem-dev libpmem2-dev pmdk-tools"
)

list=
if [ "${1-}" = --list ]; then list=1; shift; fi
[ $# -gt 0 ] || set -- product python java tests
packages=()
for group in "$@"; do
  [ -n "${groups[$group]-}" ] || { echo "install-deps: there is no group '$group'; there are product, python, java and tests" >&2; exit 2; }
  read -r -d '' -a names <<<"${groups[$group]}" || true
  packages+=("${names[@]}")
done
if [ -n "$list" ]; then printf '%s\n' "${packages[@]}"; exit; fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || { echo "install-deps: there is no apt-get here, and this is for Debian 12: install what these packages of it have: ${missing[*]}" >&2; exit 2; }

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install-deps: need root or sudo to install: ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
{
  "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
} || { echo "install-deps: nothing was installed, for the reason above; these are packages of Debian 12, and for other systems there is a container (docs/install.md)" >&2; exit 1; }
# Their packages start them, and at each boot: tests start their own.
for service in memcached redis-server nutcracker; do
  if [[ " ${missing[*]} " == *" $service "* ]] && [ -d /run/systemd/system ]; then
    "${as_root[@]}" systemctl disable --now "$service"
  fi
done
