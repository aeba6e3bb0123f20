#!/usr/bin/env python3
"""watched.py has a test fail for what a sanitizer reports, also where nobody hears of it.  watched_test.py [unittest arguments]"""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, built_in, temporary_folder  # noqa: E402

WATCHED = pathlib.Path(__file__).with_name("watched.py")

# The address sanitizer ends it for the freed memory. The thread sanitizer lets it go on, and it is killed.
PROGRAM = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static int number;

static void* change(void* unused) {
  ++number;
  return unused;
}

int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, change, NULL);
  ++number;
  pthread_join(other, NULL);
  volatile char* memory = malloc(1);
  free((void*)memory);
  (void)*memory;
  return raise(SIGKILL);
}
"""


def watched(*command, **variables):
    return subprocess.run([sys.executable, "-B", WATCHED, *map(str, command)], env={**CLEAN, **variables}, capture_output=True, text=True,
                          timeout=HANG_SECONDS)


class Watched(unittest.TestCase):
    def test_without_a_report_the_test_ends_as_it_does(self):
        for status in (0, 3, 77):
            ended = watched("sh", "-c", f"echo said; exit {status}")
            self.assertEqual((ended.returncode, ended.stdout), (status, "said\n"))

    def test_what_the_variables_say_already_stays(self):
        said = watched("sh", "-c", "echo $ASAN_OPTIONS", ASAN_OPTIONS="verbosity=0:exitcode=5").stdout
        self.assertRegex(said, r'\Averbosity=0:exitcode=5:log_path="/.*/report"\n\Z')

    def test_reports_that_nobody_hears_of(self):
        folder = temporary_folder(self)
        (folder / "program.c").write_text(PROGRAM)
        for sanitizer, says in (("address", "heap-use-after-free"), ("thread", "data race")):
            with self.subTest(sanitizer):
                program = built_in(folder, "clang-19", f"-fsanitize={sanitizer}", "program.c", "-o", "program")
                ended = watched("sh", "-c", f"{program} 2>/dev/null; {program} 2>/dev/null; true")
                self.assertEqual(ended.returncode, 1, ended)
                self.assertIn(says, ended.stdout)
                self.assertIn("reported something: 2\n", ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
