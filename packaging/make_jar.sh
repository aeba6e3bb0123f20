#!/bin/sh
# Makes the Maven artifact, which brings its native part along: build/packages/spillway-kv-VERSION.jar.  make_jar.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")/.." && pwd)
work=$build/jar
rm -rf "$work"
cmake --install "$build" --strip --component kv --prefix "$work/prefix" > /dev/null
mkdir "$work/native" "$work/notices"
find "$work/prefix" \( -name libspillway_kv_jni.so -o -name libspillway_kv.so.0 \) -exec cp -L {} "$work/native" \;
if [ ! -e "$work/native/libspillway_kv_jni.so" ]; then
  echo "jar: libspillway_kv_jni.so was not built, since there was no JDK: apt-get install default-jdk-headless, and configure again" >&2
  exit 2
fi
cp "$here/LICENSE" "$here/NOTICE" "$work/notices"
cp -r "$here/bindings/java" "$work/source"
mvn -q -B -Dstyle.color=never -f "$work/source/pom.xml" -Dspillway.native="$work/native" -Dspillway.notices="$work/notices" -Dmaven.test.skip=true package
mkdir -p "$build/packages"
rm -f "$build"/packages/*.jar  # of another version
cp "$work"/source/target/*.jar "$build/packages"
rm -rf "$work"
ls "$build"/packages/*.jar
