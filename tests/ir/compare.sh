#!/bin/sh
# compare.sh BIN CLANG_BIN SOURCE OUTPUT FLAGS...: the program prints the same whether compiled by clang or by
# spillcc, with the heap in plain memory, spilled, and spilled with next to no page resident. Exit status 77: this
# processor cannot run what the flags ask for.
set -e
bin=$1 clang=$2 source=$3 output=$4
shift 4
case "$*" in
*x86-64-v4*) grep -q avx512vl /proc/cpuinfo || { echo "this processor has no avx512vl"; exit 77; } ;;
esac
case $source in
*.cpp) native=$clang/clang++ spill=$bin/spillc++ ;;
*) native=$clang/clang spill=$bin/spillcc ;;
esac
"$native" -w -mcx16 "$@" "$source" -o "$output.native" -latomic
"$spill" -w -mllvm -spill-verify -mcx16 "$@" "$source" -o "$output.spill" -latomic
"$output.native" >"$output.expected"
for resident in 0 1000 3; do
  SPILL_TEST_REPORT=$output.report SPILL_TEST_RESIDENT=$resident "$output.spill" >"$output.got"
  cmp "$output.expected" "$output.got"
  echo "resident $resident: $(cat "$output.report")"
done
# The kernels call nothing on spilled memory that was not compiled by spillcc: a fault is a missed access.
case $source in
*kernels.c | *lanes.c) grep -q '^faults 0 translations [1-9][0-9][0-9][0-9]' "$output.report" ;;
esac
