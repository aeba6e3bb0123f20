#!/usr/bin/env python3
"""Every function of the C library that takes a pointer is either intercepted or known not to need it.

  check_complete.py CLANG INTERCEPTORS LEFT

The functions are those that the headers of the C library's development package declare and the library exports. LEFT
has those that are not intercepted, by reason, in sections "[reason]" of names. A function in neither list is an error:
if it makes a system call on memory that it is given, it needs an interceptor (CONTRIBUTING.md), otherwise a place in
LEFT. So is a name in LEFT that is intercepted, or that no header declares. Exit status 77 if this is another C library
than the one that the lists were made for.
"""
import json
import pathlib
import re
import subprocess
import sys

VERSION = "2.36"
# Headers that cannot be included together with all others.
LEFT_OUT = {"regexp.h", "sys/elf.h", "sys/vm86.h"}
# Pointers to these lead to the C library's own objects, in its own memory.
OWN_OBJECTS = re.compile(r"\b(FILE|__FILE|DIR|FTS|FTS64|struct __locale_struct)\b")
POINTER = re.compile(r"\*|\[|va_list")


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def headers():
    for path in run("dpkg", "-L", "libc6-dev").split():
        if path.endswith(".h") and not re.search(r"/(bits|gnu|finclude)/", path):
            yield path.split("/usr/include/")[1].replace("x86_64-linux-gnu/", "")


def exported():
    names = set()
    for library in ("libc.so.6", "libm.so.6"):
        for line in run("nm", "-D", "--defined-only", f"/lib/x86_64-linux-gnu/{library}").splitlines():
            fields = line.split()
            if len(fields) == 3 and fields[1] in "TWi":
                names.add(fields[2].split("@")[0])
    return names


def takes_memory(declaration):
    types = [parameter["type"].get("desugaredQualType", parameter["type"]["qualType"])
             for parameter in declaration.get("inner", []) if parameter.get("kind") == "ParmVarDecl"]
    memory = [text for text in types if POINTER.search(text) and not OWN_OBJECTS.search(text) and "(*)" not in text]
    return bool(memory) or declaration.get("variadic", False)


def functions(clang):
    source = "#define _GNU_SOURCE\n#include <stddef.h>\n" + "".join(
        f"#include <{name}>\n" for name in headers() if name not in LEFT_OUT)
    tree = json.loads(run(clang, "-fsyntax-only", "-w", "-xc", "-", "-Xclang", "-ast-dump=json", input=source))
    known = exported()
    return {node["name"] for node in tree["inner"]
            if node.get("kind") == "FunctionDecl" and node.get("name") in known and takes_memory(node)}


def main():
    clang, interceptors, left = sys.argv[1:]
    libc = pathlib.Path("/lib/x86_64-linux-gnu/libc.so.6")
    if not pathlib.Path("/var/lib/dpkg").exists() or not libc.exists() or f"release version {VERSION}" not in run(str(libc)):
        print(f"the lists are of version {VERSION} of the C library, on Debian")
        return 77
    intercepted = set(re.findall(r"^SPILLWAY_\w+\((\w+)\)", pathlib.Path(interceptors).read_text(), re.M))
    text = re.sub(r"#.*", "", pathlib.Path(left).read_text())
    names = re.sub(r"\[[^\]]*\]", "", text).split()
    found = functions(clang)
    problems = [f"{name}: neither intercepted nor in {left}" for name in sorted(found - intercepted - set(names))]
    problems += [f"{name}: in {left}, but intercepted" for name in sorted(set(names) & intercepted)]
    problems += [f"{name}: in {left}, but takes no memory" for name in sorted(set(names) - found)]
    problems += [f"{name}: twice in {left}" for name in sorted({name for name in names if names.count(name) > 1})]
    print("\n".join(problems) or f"{len(found & intercepted)} functions intercepted, {len(names)} left")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
