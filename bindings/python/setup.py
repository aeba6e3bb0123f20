"""Builds the extension module, and copies the C library beside it: that of SPILLWAY_PREFIX, or else the one that pkg-config finds."""
import os
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


def folder_of(what):
    """The folder of the C library's headers ("includedir") or of its files ("libdir")."""
    prefix = os.environ.get("SPILLWAY_PREFIX")
    environment = dict(os.environ)
    if prefix:
        folders = [os.path.join(prefix, "lib", "pkgconfig"), os.path.join(prefix, "lib", "x86_64-linux-gnu", "pkgconfig")]
        environment["PKG_CONFIG_LIBDIR"] = ":".join(folders)  # and nowhere else
        environment.pop("PKG_CONFIG_PATH", None)
    try:
        found = subprocess.run(["pkg-config", f"--variable={what}", "spillway-kv"], env=environment, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("pkg-config, which tells where Spillway is, is not there: apt-get install pkg-config")
    if found.returncode != 0 or not found.stdout.strip():
        sys.exit("spillway-kv is not found: install Spillway (make install), and set SPILLWAY_PREFIX to where it is.\n" + found.stderr)
    return os.path.realpath(found.stdout.strip())


class BuildWithLibrary(build_ext):
    """Copies the library into the package, which then needs no Spillway where it is installed, and does not change with the one there."""

    def run(self):
        super().run()
        shutil.copy(os.path.join(library_folder, "libspillway_kv.so.0"), os.path.dirname(self.get_ext_fullpath("spillway._kv")))


library_folder = folder_of("libdir")
setup(cmdclass={"build_ext": BuildWithLibrary},
      ext_modules=[Extension("spillway._kv", ["src/spillway/_kv.c", "src/spillway/items.c", "src/spillway/many.c", "src/spillway/sessions.c"], depends=["src/spillway/store.h"], include_dirs=[folder_of("includedir")], libraries=["spillway_kv"],
                             library_dirs=[library_folder], runtime_library_dirs=["$ORIGIN"],
                             extra_compile_args=["-std=c11", "-Wall", "-Wextra", "-Wno-missing-field-initializers"])])
