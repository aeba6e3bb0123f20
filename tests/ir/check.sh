#!/bin/sh
# check.sh OPT FILECHECK PLUGIN FILE.ll: the pass's output on FILE matches the CHECK lines in it. Options of
# the pass stand in lines "; OPTIONS: ...". The output is verified IR too.
set -e
opt=$1 filecheck=$2 plugin=$3 file=$4
options=$(sed -n 's/^; OPTIONS: //p' "$file")
output=$("$opt" "-load-pass-plugin=$plugin" -passes='spillway,verify' $options -S "$file")
printf '%s\n' "$output" | "$filecheck" "$file"
