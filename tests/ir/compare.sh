#!/bin/sh
# compare.sh BIN CLANG_BIN SOURCE OUTPUT [-fspill-bodies=2|-fspill-translation=satc] FLAGS...: the program prints the same whether compiled
# by clang or by spillcc, with the heap in plain memory, spilled, and spilled with next to no page resident; with two
# bodies also where the native one runs for ever, and for a while. Exit status 77: this processor cannot run what the
# flags ask for.
set -e
bin=$1 clang=$2 source=$3 output=$4
shift 4
bodies= way=
if [ "$1" = -fspill-bodies=2 ]; then
  bodies=$1
  shift
elif [ "$1" = -fspill-translation=satc ]; then
  way=$1
  shift
fi
case "$*" in
*x86-64-v4*) grep -q avx512vl /proc/cpuinfo || { echo "this processor has no avx512vl"; exit 77; } ;;
esac
case $source in
*.cpp) native=$clang/clang++ spill=$bin/spillc++ level=-O0 ;; # which prints the same: half the time would be its optimization
*) native=$clang/clang spill=$bin/spillcc level= ;;
esac
"$native" -w -mcx16 "$@" $level "$source" -o "$output.native" -latomic
"$spill" $bodies $way -w -mllvm -spill-verify -mcx16 "$@" "$source" -o "$output.spill" -latomic
"$output.native" >"$output.expected"
run() { # RESIDENT NATIVE
  SPILL_TEST_REPORT=$output.report SPILL_TEST_RESIDENT=$1 SPILL_TEST_NATIVE=$2 "$output.spill" >"$output.got"
  cmp "$output.expected" "$output.got"
  echo "resident $1, native $2: $(cat "$output.report")"
  # How often the byte was read that allows native bodies: if nobody has, none ran.
  case $2 in
  [1-9]*) grep -q ' reads [1-9]' "$output.report" ;;
  esac
  # Native code that is under way when it is over goes on to the next loop's head.
  case $source in
  *kernels.c) grep -q '^faults [0-9]\{1,2\} ' "$output.report" ;;
  esac
}
if [ -n "$bodies" ]; then
  run 0 always
  run 1000 always
  case $source in
  *kernels.c | *containers.cpp) often='1 300 30000' ;;
  *) often='1 10 50 200 600 2000 6000 30000' ;;
  esac
  for reads in $often; do
    run 3 $reads
  done
fi
for resident in 0 1000 3; do
  run $resident 0
done
# The kernels call nothing on spilled memory that was not compiled by spillcc: a fault is a missed access.
case $source in
*kernels.c | *lanes.c) grep -q '^faults 0 translations [1-9][0-9][0-9][0-9]' "$output.report" ;;
esac
