#!/usr/bin/env python3
"""Writes the manual pages and the shells' completion of the programs in a folder.  make_pages.py PROGRAMS OUT

OUT/runtime and OUT/compiler are what is installed to share/ with `spillway`, and with spillcc and spillc++:
man/man1, bash-completion/completions, fish/vendor_completions.d, and zsh, whose folder depends on where it is installed.
"""
import pathlib
import shutil
import subprocess
import sys

import commands
import completion
import manual


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_completion(folder, name, scripts):
    for shell, file in (("bash", f"bash-completion/completions/{name}"), ("fish", f"fish/vendor_completions.d/{name}.fish"), ("zsh", f"zsh/_{name}")):
        write(folder / file, scripts[shell])


def main(programs, out):
    spillway = commands.read(programs / "spillway", "spillway")
    compilers = [commands.read_compiler(programs / name, name) for name in ("spillcc", "spillc++")]
    version = subprocess.run([programs / "spillway", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    version = version[0].upper() + version[1:]
    runtime, compiler = out / "runtime", out / "compiler"
    for folder in (runtime, compiler):
        shutil.rmtree(folder, ignore_errors=True)

    pages = [spillway, *spillway.subcommands, *compilers]
    for command in pages:
        folder = compiler if command in compilers else runtime
        write(folder / "man/man1" / manual.file_name(command), manual.page(command, version, pages))
    write_completion(runtime, "spillway", completion.scripts(spillway))
    for command in compilers:
        write_completion(compiler, command.name, completion.compiler_scripts(command))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
