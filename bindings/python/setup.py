"""The extension module, against the Spillway in SPILLWAY_PREFIX, or else the one that pkg-config finds."""
import os
import shlex
import subprocess
import sys

from setuptools import Extension, setup


def flags():
    """(include folders, library folders) of the C library."""
    prefix = os.environ.get("SPILLWAY_PREFIX")
    environment = dict(os.environ)
    if prefix:
        folders = [os.path.join(prefix, "lib", "pkgconfig"), os.path.join(prefix, "lib", "x86_64-linux-gnu", "pkgconfig")]
        environment["PKG_CONFIG_PATH"] = ":".join(folders)
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "spillway-kv"], env=environment, capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit("spillway-kv is not found: install Spillway (make install), and set SPILLWAY_PREFIX to where it is.\n" + found.stderr)
    words = shlex.split(found.stdout)
    # pkg-config leaves out what compilers know.
    return ([word[2:] for word in words if word.startswith("-I")] or ["/usr/include"],
            [word[2:] for word in words if word.startswith("-L")] or ["/usr/lib"])


include_folders, library_folders = flags()
library_folders = [os.path.realpath(folder) for folder in library_folders]
setup(ext_modules=[Extension("spillway._kv", ["src/spillway/_kv.c", "src/spillway/items.c", "src/spillway/many.c", "src/spillway/sessions.c"], depends=["src/spillway/store.h"], include_dirs=include_folders, libraries=["spillway_kv"],
                             library_dirs=library_folders, runtime_library_dirs=library_folders,
                             extra_compile_args=["-std=c11", "-Wall", "-Wextra", "-Wno-missing-field-initializers"])])
