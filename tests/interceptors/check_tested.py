#!/usr/bin/env python3
"""Every interceptor is called by a test: beside its file, or in a program of tests/e2e or tests/globals.  check_tested.py SOURCE

It counts as called if its name is a word of the test. LED_TO has those that headers call for another name.
"""
import pathlib
import re
import sys

# Whole names, or how names begin, and the word of a test for which a header calls them.
LED_TO = {
    "_Zn": "new",  # operators of C++
    "_Zd": "delete",
    "__isoc99_": None,  # the rest of the name
    "_setjmp": "setjmp",
    "__sigsetjmp": "sigsetjmp",
    "__longjmp_chk": "longjmp",  # where sources are fortified
    "__pthread_register_cancel_defer": "pthread_cleanup_push_defer_np",
    "__pthread_unregister_cancel_restore": "pthread_cleanup_pop_restore_np",
    "__pthread_register_cancel": "pthread_cleanup_push",
    "__pthread_unregister_cancel": "pthread_cleanup_pop",
}
# aio.c is compiled with 64-bit offsets, so what it calls has these names.
OF_64_BITS = re.compile(r"((?:aio|lio)_\w+)64")


def word_for(name):
    """The word of a test that calls the interceptor of this name."""
    for begin, word in LED_TO.items():
        if name.startswith(begin):
            return word or name.removeprefix(begin)
    if found := OF_64_BITS.fullmatch(name):
        return found[1]
    return name


def main(source):
    names = re.findall(r"^SPILLWAY_\w+\((\w+)\)", (source / "include/spillway/interceptors.inc").read_text(), re.M)
    tests = list((source / "src/spill").rglob("*_test.cc"))
    for folder in ("tests/e2e", "tests/globals"):
        tests += [path for path in (source / folder).rglob("*") if path.suffix in (".c", ".cc")]
    code = [re.sub(r"//.*|/\*.*?\*/|\"[^\"\n]*\"", "", path.read_text()) for path in tests]
    words = {word.removeprefix("__spill_") for text in code for word in re.findall(r"\w+", text)}
    assert len(names) > 600 and len(tests) > 100, "there are hardly any interceptors, or tests"
    missing = [name for name in names if word_for(name) not in words]
    if missing:
        sys.exit(f"no test calls {', '.join(missing)}")
    print(f"{len(names)} interceptors are called by tests")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
