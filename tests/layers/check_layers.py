#!/usr/bin/env python3
"""Fails when a folder includes a folder of its own or a higher layer (docs/ARCHITECTURE.md, "Layers" and
"Folders").

  check_layers.py ROOT         checks the repository at ROOT, prints each crossing as FILE:LINE, exit status 1
  check_layers.py --self-test  checks that each kind of crossing is found in made-up repositories

Rules
 1 a file under src/X includes files of X itself and of folders on strictly lower layers
 2 include/spillway holds the public API, layer 6, whose code is src/capi; its two data files, which runtime and compiler
   share, may be included from anywhere
 3 compiler/ includes nothing of ours but those two data files and its own files
 4 includes are written from src/, include/ or the top folder, never "../x.h"
 5 no header of src/sys is called like one of the C library's sys/ headers, which it would hide
 6 within a layer of ORDERS a file includes only files of its own folder, of those before it there, and of those that share
   its place; tests and fuzzers also others
 7 within a layer of APART, whose folders are libraries of their own, a file includes only files of its own folder and those
   that lie in none
 8 what lies in a folder `testing`, or is called test_*, is for tests: only they, fuzzers and each other include it
To add a folder under src/: a line in LAYERS; under one that ORDERS has: its place there.
"""
import pathlib
import re
import sys
import tempfile

LAYERS = {
    "base": 0,
    "sys": 1,
    "persist": 2,
    "storage": 3,
    "task": 4, "cache": 4, "batch": 4,
    "spill": 5, "pagecache": 5, "kv": 5,
    "server": 6, "capi": 6,
}
# Folders within a layer, lowest first, those that include each other in one place; "" is the layer's own files.
ORDERS = {
    "storage": ["", ("backends", "decorators", "opening"), "spdk", "testing"],
    "cache": ["pages", "sets", "policies", ("partition", "servers", ""), "testing"],
    "persist": ["", "model", "check", "own"],
    "kv": ["index", "media", "log", "recovery", "tier", "collection", "", "testing"],
    "server": ["", "memcache", "resp", "items", "net", "clients", "front"],
}
APART = ("capi",)
PUBLIC_API_LAYER = 6
TOOLS_LAYER = 7
IMPLEMENTS = ("capi", "include/spillway")
SHARED_DATA = {"spillway/abi.inc", "spillway/interceptors.inc"}
SUFFIXES = {".h", ".hpp", ".cc", ".inc", ".c", ".cpp", ".S"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LIBC_SYS_FOLDERS = ("/usr/include/x86_64-linux-gnu/sys", "/usr/include/sys")


def includes(path):
    """Yields (line number, quote, name) of each #include, leaving out those in comments."""
    text = path.read_text(encoding="utf-8", errors="replace")
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file())


def layer_of(name, root):
    """The (folder, layer) that an include names, or None when it is not ours."""
    top = name.split("/")[0]
    if top == "spillway":
        return "include/spillway", PUBLIC_API_LAYER
    if top in LAYERS and (root / "src" / name).exists():
        return top, LAYERS[top]
    return None


def is_test(path):
    return path.stem.endswith(("_test", "_fuzz"))


def is_for_tests(path):
    return path.name.startswith("test_") or "testing" in path.parts[:-1]


def check_source_folder(root, folder, layer, own):
    for path in sources(folder):
        tests = is_test(path) or is_for_tests(path.relative_to(root))
        for number, quote, name in includes(path):
            where = f"{path.relative_to(root)}:{number}"
            if ".." in pathlib.PurePosixPath(name).parts:
                yield f"{where}: \"{name}\" climbs out of its folder; write the path from src/"
                continue
            if not tests and is_for_tests(pathlib.PurePosixPath(name)):
                yield f"{where}: includes {name}, which is for tests"
                continue
            if name in SHARED_DATA:
                continue
            found = layer_of(name, root)
            if found is None:
                if quote == '"' and not (path.parent / name).exists() and not (root / name).exists():
                    yield f"{where}: \"{name}\" is not a file under src/ or include/"
                continue
            if found[0] != own and found[1] >= layer and (own, found[0]) != IMPLEMENTS:
                kind = "a sibling" if found[1] == layer else "a higher layer"
                yield f"{where}: {own} (layer {layer}) includes {name} of {found[0]} (layer {found[1]}), {kind}"


def inner_folder(path):
    """Of a path from src/ on: where in its layer the file is; "log" of kv/log/log.h, "" of kv/store.h."""
    return "/".join(path.parts[1:-1])


def check_order(root, layer, order):
    places = {folder: i for i, place in enumerate(order) for folder in ([place] if isinstance(place, str) else place)}
    for path in sources(root / "src" / layer):
        own = inner_folder(path.relative_to(root / "src"))
        if own not in places:
            yield f"{path.relative_to(root)}: src/{layer}/{own} has no place among the folders of {layer}; give it one in ORDERS"
            continue
        if is_test(path):
            continue
        for number, _, name in includes(path):
            other = inner_folder(pathlib.PurePosixPath(name))
            if other == "testing":
                continue  # rule 8
            if name.startswith(layer + "/") and other in places and places[other] > places[own]:
                yield f"{path.relative_to(root)}:{number}: includes {name} of a higher folder of {layer}"


def check_apart(root, layer):
    def library(path):
        return inner_folder(path).split("/")[0]

    for path in sources(root / "src" / layer):
        own = library(path.relative_to(root / "src"))
        for number, _, name in includes(path):
            if name.startswith(layer + "/") and library(pathlib.PurePosixPath(name)) not in ("", own):
                yield f"{path.relative_to(root)}:{number}: includes {name} of another library of {layer}"


def check_compiler(root):
    for path in sources(root / "compiler"):
        for number, quote, name in includes(path):
            own = (path.parent / name).exists() or (root / "compiler" / name).exists()
            ours = name.startswith("spillway/") or layer_of(name, root) or (root / name).exists()
            climbs = ".." in pathlib.PurePosixPath(name).parts
            if climbs or (ours and not own and name not in SHARED_DATA):
                yield (f"{path.relative_to(root)}:{number}: compiler/ includes {name}; it shares only "
                       "include/spillway/abi.inc and interceptors.inc with the runtime")


def check(root):
    """All crossings in the repository at `root`, as lines of text."""
    problems = []
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        if folder.name not in LAYERS:
            problems.append(f"src/{folder.name}: has no layer; give it one in tests/layers/check_layers.py")
            continue
        problems += check_source_folder(root, folder, LAYERS[folder.name], folder.name)
    for layer, order in ORDERS.items():
        problems += check_order(root, layer, order)
    for layer in APART:
        problems += check_apart(root, layer)
    problems += check_source_folder(root, root / "include", PUBLIC_API_LAYER, "include/spillway")
    problems += check_source_folder(root, root / "tools", TOOLS_LAYER, "tools")
    problems += check_compiler(root)
    for header in sources(root / "src" / "sys"):
        if any((pathlib.Path(folder) / header.name).exists() for folder in LIBC_SYS_FOLDERS):
            problems.append(f"src/sys/{header.name}: hides the C library's <sys/{header.name}>; choose another name")
    return problems


def self_test():
    clean = {
        "src/base/a.h": "#include <cstdint>\n",
        "src/sys/b.h": '#include "base/a.h"\n// #include "cache/c.h"\n/*\n#include "spill/d.h"\n*/\n',
        "src/cache/c.h": '#include "base/a.h"\n#include "sys/b.h"\n#include "cache/other.h"\n',
        "src/cache/other.h": '#include "cache/servers/p.h"\n',
        "src/cache/pages/o.h": "",
        "src/cache/servers/p.h": '#include "cache/c.h"\n#include "cache/pages/o.h"\n',
        "src/batch/e.h": "",
        "src/cache/c_test.cc": '#include "cache/c.h"\n#include "storage/testing/s.h"\n#include "sys/test_b.h"\n',
        "src/storage/testing/s.h": '#include "sys/test_b.h"\n',
        "src/sys/test_b.h": '#include "sys/b.h"\n',
        "tests/cache/support.h": "",
        "src/spill/d.h": '#include "cache/c.h"\n#include "spillway/abi.inc"\n#include <sys/mman.h>\n',
        "src/kv/index/h.h": '#include "base/a.h"\n#include "kv/index/i.h"\n',
        "src/kv/index/i.h": "",
        "src/kv/index/h_test.cc": '#include "kv/testing/k.h"\n',
        "src/kv/log/j.h": '#include "kv/index/h.h"\n',
        "src/kv/store.h": '#include "kv/log/j.h"\n#include "kv/other.h"\n',
        "src/kv/other.h": "",
        "src/kv/testing/k.h": '#include "kv/store.h"\n',
        "src/capi/f.cc": '#include "spill/d.h"\n#include "spillway/api.h"\n',
        "src/capi/common.h": "",
        "src/capi/kv/o.h": '#include "capi/common.h"\n#include "capi/kv/inner/n.h"\n',
        "src/capi/kv/inner/n.h": '#include "capi/kv/o.h"\n',
        "src/capi/pages/o.h": "",
        "include/spillway/abi.inc": "",
        "include/spillway/api.h": "#include <stdint.h>\n",
        "compiler/pass.cc": '#include "llvm/IR/Module.h"\n#include "spillway/abi.inc"\n#include "pass.h"\n',
        "compiler/pass.h": '#include "loops/part.h"\n',
        "compiler/loops/part.h": '#include "pass.h"\n',
        "tools/t/main.cc": '#include "spill/d.h"\n#include "base/a.h"\n',
    }
    # Each crossing: one file more or other than the clean repository's, and what the message must hold.
    crossings = [
        ("src/base/a.h", '#include "sys/b.h"\n', "higher layer"),
        ("src/cache/c.h", '#include "batch/e.h"\n', "sibling"),
        ("src/cache/c.h", '#  include <spill/d.h>\n', "higher layer"),
        ("src/spill/d.h", '#include "spillway/api.h"\n', "higher layer"),
        ("src/sys/b.h", '#include "../base/a.h"\n', "climbs"),
        ("src/sys/b.h", '#include "nowhere/a.h"\n', "not a file"),
        ("src/cache/c_test.cc", '#include "support.h"\n', "not a file"),
        ("src/sys/mman.h", "", "hides"),
        ("src/newcomer/a.h", "", "no layer"),
        ("src/kv/index/i.h", '#include "kv/log/j.h"\n', "higher folder"),
        ("src/kv/index/i.h", '#include "kv/other.h"\n', "higher folder"),
        ("src/kv/other.h", '#include "kv/testing/k.h"\n', "for tests"),
        ("src/kv/other.h", '#include "storage/testing/s.h"\n', "for tests"),
        ("src/sys/b.h", '#include "sys/test_b.h"\n', "for tests"),
        ("tools/t/main.cc", '#include "sys/test_b.h"\n', "for tests"),
        ("src/cache/pages/o.h", '#include "cache/servers/p.h"\n', "higher folder"),
        ("src/kv/log/deep/l.h", "", "no place"),
        ("compiler/pass.h", '#include "base/a.h"\n', "shares only"),
        ("compiler/pass.h", '#include "spillway/api.h"\n', "shares only"),
        ("compiler/loops/part.h", '#include "sys/b.h"\n', "shares only"),
        ("include/spillway/api.h", '#include "capi/f.cc"\n', "sibling"),
        ("include/spillway/api.hpp", '#include "capi/f.cc"\n', "sibling"),
        ("src/server/g.cc", '#include "spillway/api.h"\n', "sibling"),
        ("src/capi/kv/inner/n.h", '#include "capi/pages/o.h"\n', "another library"),
        ("src/capi/common.h", '#include "capi/pages/o.h"\n', "another library"),
    ]

    def problems_of(files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check(pathlib.Path(folder))

    if found := problems_of(clean):
        sys.exit(f"the clean example is refused: {found}")
    for name, text, expected in crossings:
        found = problems_of({**clean, name: text})
        if len(found) != 1 or expected not in found[0]:
            sys.exit(f"{name} with {text!r}: expected one problem with {expected!r}, found {found}")
    print(f"{len(crossings)} crossings found, the clean example passes")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], "src").is_dir():
        print("usage: check_layers.py ROOT | --self-test", file=sys.stderr)
        sys.exit(2)
    root = pathlib.Path(sys.argv[1])
    problems = [f"{folder}: there are no sources" for folder in (*(f"src/{name}" for name in LAYERS), "include", "tools", "compiler") if not sources(root / folder)]
    problems += check(root)
    print("\n".join(problems) or "no layer is crossed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
