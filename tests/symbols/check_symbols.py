#!/usr/bin/env python3
"""Checks what the runtime's binaries ask of the process that they live in.

  check_symbols.py --interceptors FILE --objects OBJECT...
  check_symbols.py --interceptors FILE --library libspillway.so --allocator libjemalloc_pic.a
  check_symbols.py --interceptors FILE --static spillway-static.o --options spillway-static.options
  check_symbols.py --interceptors FILE --self-test CXX WORK_FOLDER

Rules
 1 no object calls a function of interceptors.inc: in the user's process that name is the runtime's
   own, or instrumented code's. An object that defines __spill_NAME may call NAME, which it wraps. The
   interceptors (objects that define any __spill_ name, and HELPERS) may call whatever the runtime does
   not export under its own name: the C library's, with plain pointers. EXEMPT_CALLS names the rest
 2 no exceptions and no RTTI: neither symbols of them nor the C++ library; UNWINDERS let the program's
   exceptions pass
 3 the library runs no constructor but those in CONSTRUCTORS
 4 the library's only undefined names of interceptors.inc are those that the allocator calls (its
   calls are served like any uninstrumented library's) and those that rule 1 lets through
 5 the runtime for static linking defines nothing but the interceptors, what instrumented code needs
   (abi.inc) and __wrap_ of each name that the linker is told to wrap, and no group that a program's could
   be merged with; it asks for __real_ of wrapped names only, and for no name that it exports
"""
import argparse
import functools
import pathlib
import re
import subprocess
import sys

# Constructors that may run when the library is loaded, and why.
CONSTRUCTORS = {
    "jemalloc_constructor": "the allocator registers its fork handlers",
    "frame_dummy": "every object that the C compiler's start files are linked into has it",
    "__cpu_indicator_init": "the compiler's own support of __builtin_cpu_supports",
}
WRAPPER_PREFIX = "__spill_"
HELPERS = {"access.cc.o", "asynchronous.cc.o", "by_number.cc.o", "context.cc.o", "format_printf.cc.o", "format_scanf.cc.o", "futex.cc.o"}
UNWINDERS = {"once.c.o", "operator_new.c.o"}
# Calls that the rules forbid and that are right all the same, by object and name, and why.
EXEMPT_CALLS = {
    ("caller.cc.o", "dlopen"): "asks for what others find, with no name in it",
    ("heap_system.cc.o", "pthread_key_create"): "the allocator's key, with a variable of the allocator's",
    ("last_thread.cc.o", "pthread_key_create"): "wants the C library's own key, for a variable of the runtime",
    ("parking.cc.o", "pthread_setcanceltype"): "the C library's own, with a variable of the runtime",
    ("spdk_load.cc.o", "dlmopen"): "loads a library into a name space of its own, by a name in plain memory",
}
HEAP = re.compile(r"^(malloc\w*|calloc|realloc\w*|free|aligned_alloc|posix_memalign|memalign|p?valloc|_Z[nd][wal].*)$")
CXX_RUNTIME = re.compile(r"^(_Unwind_Resume|__gxx_personality_v0|__cxa_(throw|begin_catch|allocate_exception|guard_\w+)"
                         r"|_ZT[IS]\w+|__dynamic_cast|_ZTVN10__cxxabiv1\w+)$")
CXX_LIBRARIES = ("libstdc++.so", "libc++.so")
# The C library's fork calls it by its name, after what the runtime does at a fork.
STATIC_NOT_WRAPPED = {"_Fork"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@functools.cache
def symbols(path, *options):
    """(type, name without its version) of each symbol that nm lists."""
    found = []
    for line in run("nm", "--format=posix", *options, str(path)).splitlines():
        fields = line.split()
        if len(fields) >= 2 and not line.endswith(":"):
            found.append((fields[1], fields[0].split("@")[0]))
    return found


def undefined(path, *options):
    return {name for kind, name in symbols(path, *options) if kind in "Uwv"}


def defined(path):
    return {name for kind, name in symbols(path) if kind not in "Uwv"}


def intercepted_names(path):
    text = pathlib.Path(path).read_text()
    return set(re.findall(r"^SPILLWAY_(?:INTERCEPT|INTERPOSE|EXPORT|HEAP)\((\w+)\)", text, flags=re.M))


def exported_names(path):
    """What the runtime exports under its own name: the heap, and SPILLWAY_INTERPOSE."""
    names = intercepted_names(path)
    interposed = re.findall(r"^SPILLWAY_INTERPOSE\((\w+)\)", pathlib.Path(path).read_text(), flags=re.M)
    return {name for name in names if HEAP.match(name)} | set(interposed)


def check_object(path, intercepted, exported=None):
    own = defined(path)
    intercepts = any(name.startswith(WRAPPER_PREFIX) for name in own) or pathlib.Path(path).name in HELPERS
    forbidden = exported if intercepts and exported is not None else intercepted
    for name in sorted(undefined(path) & forbidden):
        if WRAPPER_PREFIX + name not in own and (pathlib.Path(path).name, name) not in EXEMPT_CALLS:
            yield f"{path}: calls {name}, which the runtime intercepts; use sys/ or base/plain_memory.h"
    for kind, name in symbols(path):
        if name == "_Unwind_Resume" and pathlib.Path(path).name in UNWINDERS:
            continue
        if CXX_RUNTIME.match(name):
            yield f"{path}: holds {name}: built with exceptions, RTTI or thread-safe statics"


def constructors(path):
    """Names of the functions in .init_array, an address where there is no name."""
    section = re.search(r"\.init_array\s+INIT_ARRAY\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", run("readelf", "-SW", path))
    if section is None:
        return []
    begin, size = int(section[1], 16), int(section[2], 16)
    named = {}
    for line in run("nm", str(path)).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tT":
            named.setdefault(int(fields[0], 16), fields[2])
    functions = []
    for line in run("readelf", "-rW", path).splitlines():
        fields = line.split()
        if len(fields) >= 4 and re.fullmatch(r"[0-9a-f]{8,16}", fields[0]) and begin <= int(fields[0], 16) < begin + size:
            target = int(fields[3], 16)
            functions.append(named.get(target, hex(target)))
    if len(functions) != size // 8:
        raise SystemExit(f"{path}: .init_array has {size // 8} entries, {len(functions)} of them understood")
    return functions


def check_library(path, allocator, intercepted):
    for name in constructors(path):
        if name not in CONSTRUCTORS:
            yield f"{path}: runs the constructor {name} when it is loaded"
    for name in sorted({name for kind, name in symbols(path)} | undefined(path, "-D")):
        # _Unwind_Resume: the objects were checked one by one.
        if CXX_RUNTIME.match(name) and name != "_Unwind_Resume":
            yield f"{path}: holds {name}: something in it was built with exceptions, RTTI or thread-safe statics"
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))
    for library in needed:
        if library.startswith(CXX_LIBRARIES):
            yield f"{path}: needs {library}"
    own = defined(path)
    allowed = undefined(allocator)
    for name in sorted(undefined(path, "-D") & intercepted - allowed):
        if WRAPPER_PREFIX + name not in own:
            yield f"{path}: calls {name}, which it intercepts"


def check_static(path, options, interceptors):
    text = pathlib.Path(interceptors).read_text()
    exported = set(re.findall(r"^SPILLWAY_(?:INTERPOSE|EXPORT|HEAP)\((\w+)\)", text, flags=re.M)) - STATIC_NOT_WRAPPED
    wrapped = set(re.findall(r"--wrap=(\w+)", pathlib.Path(options).read_text()))
    for name in sorted(exported - wrapped):
        yield f"{options}: does not wrap {name}"
    own = {name for kind, name in symbols(path, "-g") if kind not in "Uwv"}
    for name in sorted(own):
        if not name.startswith((WRAPPER_PREFIX, "__spillway_", "__wrap_")):
            yield f"{path}: defines {name}, which may be a program's"
    for name in sorted(wrapped):
        if "__wrap_" + name not in own:
            yield f"{path}: does not define __wrap_{name}"
    asked = undefined(path, "-g")
    for name in sorted(asked):
        if name.startswith("__real_") and name.removeprefix("__real_") not in wrapped:
            yield f"{path}: asks for {name}, which is not wrapped"
        if name in exported:
            yield f"{path}: calls {name}, which it exports"
        if CXX_RUNTIME.match(name) and name != "_Unwind_Resume":
            yield f"{path}: needs {name}: something in it was built with exceptions, RTTI or thread-safe statics"
    sections = run("readelf", "-SW", str(path))
    for kind in ("GROUP", "LLVM_ADDRSIG"):
        if re.search(rf"\s{kind}\s", sections):
            yield f"{path}: has a section of type {kind}"
    for name, count in (("preinit_array", 1), ("init_array", 1), ("fini_array.00000", 1)):
        size = re.search(rf"\s\.{re.escape(name)}\s+\w+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", sections)
        found = int(size[1], 16) // 8 if size else 0
        if found != count:
            yield f"{path}: {found} functions in {name}, not {count}"


def self_test(compiler, folder):
    folder = pathlib.Path(folder, "self_test")
    folder.mkdir(parents=True, exist_ok=True)
    intercepted = {"strdup", "memchr"}

    def build(name, source, *flags):
        (folder / f"{name}.cc").write_text(source)
        output = folder / f"{name}.o"
        run(compiler, "-c", "-fPIC", "-O1", "-fno-builtin", *flags, str(folder / f"{name}.cc"), "-o", str(output))
        return output

    def link(name, *objects):
        output = folder / f"{name}.so"
        run(compiler, "-shared", "-nostdlib++", *map(str, objects), "-o", str(output))
        return output

    strict = ("-fno-exceptions", "-fno-rtti")
    declare = 'extern "C" char* strdup(const char*);\n'
    clean = build("clean", 'extern "C" int add(int a, int b) { return a + b; }\n', *strict)
    wrapper = build("wrapper", declare + 'extern "C" char* __spill_strdup(const char* s) { return strdup(s); }\n', *strict)
    caller = build("caller", declare + 'extern "C" char* twice(const char* s) { return strdup(strdup(s)); }\n', *strict)
    caller_wrapper = build("caller_wrapper", declare + 'extern "C" void* memchr(const void*, int, unsigned long);\n'
                           'extern "C" char* __spill_strdup(const char* s) { return memchr(s, 0, 1) ? strdup(s) : nullptr; }\n', *strict)
    thrower = build("thrower", 'extern "C" void fail() { throw 1; }\n')
    starter = build("starter", "volatile int seven = 7;\nint f() { return seven; }\nint g = f();\n", *strict)

    failures = []

    def expect(what, found, expected):
        found = list(found)
        if (expected is None and found) or (expected is not None and not any(expected in line for line in found)):
            failures.append(f"{what}: expected {expected!r}, found {found}")

    expect("clean object", check_object(clean, intercepted), None)
    expect("wrapper object", check_object(wrapper, intercepted), None)
    expect("calling object", check_object(caller, intercepted), "calls strdup")
    expect("calling interceptor", check_object(caller_wrapper, intercepted, set()), None)
    expect("interceptor that calls what is exported", check_object(caller_wrapper, intercepted, {"memchr"}), "calls memchr")
    expect("throwing object", check_object(thrower, intercepted), "__cxa_throw")
    expect("clean library", check_library(link("clean", clean, wrapper), clean, intercepted), None)
    expect("calling library", check_library(link("caller", caller), clean, intercepted), "calls strdup")
    expect("library whose allocator calls", check_library(link("caller", caller), caller, intercepted), None)
    expect("throwing library", check_library(link("thrower", thrower), clean, intercepted), "_ZTIi")
    expect("library with a constructor", check_library(link("starter", starter), clean, intercepted), "constructor")

    # The static runtime: what is right, and one thing wrong at a time.
    listed, options, no_options = (folder / name for name in ("interceptors.inc", "options", "no_options"))
    listed.write_text("SPILLWAY_EXPORT(strdup)\n")
    options.write_text("-Wl,--wrap=strdup\n")
    no_options.write_text("")
    wraps = ('extern "C" char* __real_strdup(const char*);\n'
             'extern "C" char* __wrap_strdup(const char* s) { return __real_strdup(s); }\nstatic void run() {}\n')
    starts = '__attribute__((section(".preinit_array"), used)) static void (*const start)() = run;\n'
    ends = ('__attribute__((section(".init_array"), used)) static void (*const begin)() = run;\n'
            '__attribute__((section(".fini_array.00000"), used)) static void (*const end)() = run;\n')

    def static(name, source, given=options):
        return check_static(build(name, source, *strict), given, listed)

    expect("static runtime", static("static_clean", wraps + starts + ends), None)
    expect("static runtime that is not wrapped", static("static_clean", wraps + starts + ends, no_options), "does not wrap strdup")
    expect("static runtime without a wrapper", static("static_none", "static void run() {}\n" + starts + ends), "__wrap_strdup")
    expect("static runtime with a name of its own", static("static_named", wraps + starts + ends + "int f;\n"), "defines f")
    expect("static runtime that asks for more", static("static_real", wraps.replace("__real_strdup", "__real_x") + starts + ends), "__real_x")
    expect("static runtime that calls", static("static_calls", wraps.replace("__real_strdup", "strdup") + starts + ends), "calls strdup")
    expect("static runtime that does not start", static("static_idle", wraps + ends), "preinit_array")
    expect("static runtime with a group", static("static_group", wraps + starts + ends + "inline int g;\nint* h() { return &g; }\n"), "GROUP")
    if failures:
        raise SystemExit("\n".join(failures))
    print("each kind of violation found, clean examples pass")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interceptors", required=True)
    parser.add_argument("--objects", nargs="+")
    parser.add_argument("--library")
    parser.add_argument("--allocator")
    parser.add_argument("--static")
    parser.add_argument("--options")
    parser.add_argument("--self-test", nargs=2, metavar=("CXX", "WORK_FOLDER"))
    arguments = parser.parse_args()
    intercepted = intercepted_names(arguments.interceptors)
    if len(intercepted) < 20:
        raise SystemExit(f"{arguments.interceptors}: only {len(intercepted)} names understood")
    if arguments.self_test:
        return self_test(*arguments.self_test)
    problems = []
    for path in arguments.objects or []:
        problems += check_object(path, intercepted, exported_names(arguments.interceptors))
    if arguments.library:
        problems += check_library(arguments.library, arguments.allocator, intercepted)
    if arguments.static:
        problems += check_static(arguments.static, arguments.options, arguments.interceptors)
    print("\n".join(problems) or "nothing is asked of the process that should not be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
