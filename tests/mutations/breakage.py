"""How tables of breakages write one down that needs a test of its own; check_mutations.py says what it means."""


def mutation(name, program, gtest_filter, *patches):
    return {"name": name, "test": (program, gtest_filter), "patches": list(patches)}


def product(name, pattern, *patches):
    return mutation(name, "ctest", pattern, *patches)
