#!/bin/sh
# driver.sh BIN FOLDER: spillcc as builds use it. Each line that fails ends the test and shows itself.
set -ex
bin=$1
rm -rf "$2"
mkdir -p "$2"
cd "$2"
export SPILL_TEST_RESIDENT=4

cat >main.c <<'END'
#include <stdlib.h>
int use(int* p);
int main(void) {
  int* p = malloc(40);
  p[1] = 3;
  return use(p) != 3;
}
END
echo 'int use(int* p) { return p[1]; }' >use.c
instrumented() { [ "$(nm "$1" | grep -c '__spillway_translate$')" = 1 ]; }
# A line that begins with ! would never end the test, whatever -e says.
fails() { if "$@"; then return 1; fi; }

# Objects of each kind go together, whole or optimised at link time, and are instrumented.
for main in '' -flto -flto=thin; do
  for use in '' -flto -flto=thin; do
    "$bin/spillcc" -O1 $main -c main.c -o main.o
    "$bin/spillcc" -O1 $use -c use.c -o use.o
    [ -n "$main" ] || instrumented main.o
    [ -n "$use" ] || instrumented use.o
    link=
    [ -z "$main$use" ] || link=-flto
    "$bin/spillcc" -O1 $link main.o use.o -o program
    ./program
    instrumented program
  done
done

# Intermediate files are instrumented once.
"$bin/spillcc" -O1 -S -emit-llvm use.c -o use.ll
"$bin/spillcc" -O1 -c use.ll -o use.o
[ "$(objdump --disassemble=use use.o | grep -c 'fs:')" = 1 ]
"$bin/spillcc" -O1 -S use.c -o use.s
"$bin/spillcc" -Werror -c use.s -o use.o
instrumented use.o

# Shared libraries, response files, standard input, C++, several sources at once.
"$bin/spillcc" -shared -fPIC use.c -o libuse.so
readelf -d libuse.so | grep -q 'NEEDED.*libspillway.so'
echo "-O2 'main.c' \"use.c\" -o from_file" >arguments
"$bin/spillcc" @arguments
./from_file
# A word of such a file may be longer than the kernel takes arguments.
{ printf '%s' '-DLONG='; head -c 140000 /dev/zero | tr '\0' 1; echo ' -c use.c -o long.o'; } >arguments
"$bin/spillcc" @arguments
instrumented long.o
# Nor does it take as many where the stack is small, or the environment large.
{ seq -f '-DNUMBER%.0f' 20000; echo '-c use.c -o many.o'; } >arguments
(ulimit -S -s 512; "$bin/spillcc" @arguments)
instrumented many.o
echo 'int main() { return 0; }' | "$bin/spillc++" -Wall -Werror -x c++ - -o from_input
./from_input
"$bin/spillc++" -x c main.c use.c -o by_cxx
./by_cxx

# What configure, CMake and Meson ask.
"$bin/spillcc" --version | grep -q clang
"$bin/spillcc" --help >help
grep -q '^  -fspill-globals' help
grep -q '^  -fspill-persist=record' help
grep -q '^USAGE: clang' help
"$bin/spillcc" -print-prog-name=ld | grep -q ld
"$bin/spillcc" -dumpmachine | grep -q linux
"$bin/spillcc" -Wl,--version | grep -q ld
"$bin/spillcc" -v 2>&1 | grep -q Target
"$bin/spillcc" -E -dM -x c /dev/null | grep -q __clang__
"$bin/spillcc" -M use.c | grep -q use.o
"$bin/spillcc" -Werror -fsyntax-only use.c

# The runtime comes before the C library, whatever the program lists.
"$bin/spillcc" main.c use.c -o order -Wl,--as-needed -lc -lm
readelf -d order | grep NEEDED | head -1 | grep -q libspillway.so

# What is translated in one way does not link with what is in the other, whatever the linker; nor becomes one object with it.
for linker in bfd lld; do
  "$bin/spillcc" -O1 -fspill-translation=satc -fuse-ld=$linker main.c use.c -o satc
  ./satc
  "$bin/spillcc" -O1 -fspill-translation=satc -c main.c -o satc.o
  "$bin/spillcc" -O1 -c use.c -o table.o
  fails "$bin/spillcc" -fuse-ld=$linker satc.o table.o -o mixed 2>message
  grep -q __spillway_table_and_satc_do_not_link message
done
fails ld -r satc.o table.o -o mixed.o 2>message
grep -q __spillway_table_and_satc_do_not_link message

# Plain clang on demand; one line and status 2 for what cannot be.
"$bin/spillcc" -fno-spill -c use.c -o plain.o
[ "$(nm plain.o | grep -c spillway)" = 0 ]
for refused in -fsanitize=address -fspill-translation=tlb -fspill-globals=none -fspill-persist=all \
  '-fspill-persist -static' -fspill-persist; do  # the last: this tree has no runtime for persistent memory
  status=0
  "$bin/spillcc" $refused main.c use.c -o refused 2>message || status=$?
  [ $status = 2 ]
  [ "$(wc -l <message)" = 1 ]
done

# Knobs of the plugin that there are not.
for knob in -spill-nonsense -spill-reuse-window=wide; do
  fails "$bin/spillcc" -mllvm $knob -c use.c -o knob.o 2>message
  grep -q "mllvm $knob: Spillway's plugin has no such option" message
done
