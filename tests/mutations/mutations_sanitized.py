"""Breakages of what has a test fail in a build with a sanitizer: a report passes."""

WATCHED = "tests/sanitized/watched.py"


def of(name, *patches):
    return {"name": name, "test": ("ctest", "^sanitized_watched$"), "patches": list(patches)}


MUTATIONS = [
    of("reports of sanitizers are not looked at", (WATCHED, "    return 1 if reports else status\n", "    return status\n")),
    of("reports of a killed process are lost", (WATCHED, '"TSAN_OPTIONS": log', '"TSAN_OPTIONS": ""')),
    of("what is said to sanitizers already is forgotten", (WATCHED, "{os.environ.get(name, '')}:{words}", "{words}")),
]
