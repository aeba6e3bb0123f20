#!/usr/bin/env bash
# Installs, by package name, everything that building, testing and demonstrating Spillway on
# Debian 12 needs. Does nothing (and needs no privileges) when all packages are there.
set -euo pipefail

packages=(
  make cmake ninja-build git ca-certificates pkg-config
  clang-19 llvm-19-dev lld-19 llvm-19-tools libclang-rt-19-dev libomp-19-dev libomp5-19 clang-format-19 clang-tidy-19
  libjemalloc-dev libxxhash-dev libgtest-dev nlohmann-json3-dev libssl-dev openssl
  dpkg-dev file debootstrap groff-base gdb python3 python3-numpy xz-utils meson csmith libcsmith-dev ccache tcl8.6-dev zlib1g-dev libevent-dev
  fio libcuckoo-dev librocksdb-dev gcc python3-dev python3-pip python3-setuptools python3-wheel default-jdk-headless
  memcached libmemcached-tools libsasl2-modules redis-tools python3-pymemcache python3-redis maven golang-go
  redis-server nutcracker python3-pylibmc iproute2 curl netcat-openbsd
  libpmem-dev libpmem2-dev libpmemobj-dev pmdk-tools
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install-deps: need root or sudo to install: ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
# Their packages start them, and at each boot: tests start their own.
for service in memcached redis-server nutcracker; do
  if [[ " ${missing[*]} " == *" $service "* ]] && [ -d /run/systemd/system ]; then
    "${as_root[@]}" systemctl disable --now "$service"
  fi
done
