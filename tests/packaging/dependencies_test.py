#!/usr/bin/env python3
"""Which packages of Debian what needs: scripts/install-deps.sh is the only list, and nothing installs more of it than it needs. And how sources are fetched.
dependencies_test.py SOURCE [unittest arguments]
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, take_paths, temporary_folder  # noqa: E402

SOURCE, = take_paths(1)
SCRIPT = SOURCE / "scripts/install-deps.sh"
GROUPS = ["product", "python", "java", "tests"]


def run(*command):
    return subprocess.run([str(word) for word in command], env=CLEAN, capture_output=True, text=True, timeout=60)


def packages(*groups):
    return run(SCRIPT, "--list", *groups).stdout.split()


class Groups(unittest.TestCase):
    def test_each_package_is_in_one(self):
        everything = packages()
        self.assertEqual(len(everything), len(set(everything)))
        self.assertEqual(everything, [name for group in GROUPS for name in packages(group)])
        self.assertGreater(len(everything), 40)

    def test_the_product_is_built_without_what_tests_need(self):
        self.assertLess(len(packages("product")), len(packages()) // 3)
        self.assertFalse({"libgtest-dev", "default-jdk-headless", "golang-go", "python3-dev"} & set(packages("product")))

    def test_a_group_that_there_is_not(self):
        for command in (["produce"], ["--list", "product", "produce"]):
            ended = run(SCRIPT, *command)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertRegex(ended.stderr, r"\Ainstall-deps: [^\n]*'produce'[^\n]*product[^\n]*\n\Z")

    def test_a_system_that_is_not_debian(self):
        folder = temporary_folder(self)
        for name in ("bash", "grep"):
            (folder / name).symlink_to(shutil.which(name))
        ended = subprocess.run([SCRIPT, "product"], env={**CLEAN, "PATH": str(folder)}, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertRegex(ended.stderr, r"\Ainstall-deps: [^\n]*Debian 12[^\n]* clang-19 [^\n]*\n\Z")

    def test_a_package_that_is_held_is_there(self):
        """Compilers often are, so that upgrades leave them alone."""
        folder = temporary_folder(self)
        for name in ("bash", "env", "grep"):
            (folder / name).symlink_to(shutil.which(name))
        query = folder / "dpkg-query"
        query.write_text("#!/bin/sh\ncase $* in *db:Status-Status*) echo installed ;; *) echo 'hold ok installed' ;; esac\n")
        query.chmod(0o755)
        ended = subprocess.run([SCRIPT, "product"], env={**CLEAN, "PATH": str(folder)}, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))

    def test_packages_that_apt_does_not_have(self):
        """As in Ubuntu 22.04."""
        folder = temporary_folder(self)
        for name in ("bash", "env", "grep", "id"):
            (folder / name).symlink_to(shutil.which(name))
        for name, text in (("sudo", 'exec "$@"'), ("apt-get", "[ $1 = update ] || { echo 'E: Unable to locate package clang-19' >&2; exit 100; }")):
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        ended = subprocess.run([SCRIPT, "product"], env={**CLEAN, "PATH": str(folder)}, capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertRegex(ended.stderr, r"\AE: Unable[^\n]*\ninstall-deps: [^\n]*Debian 12[^\n]*container[^\n]*\n\Z")


class Sources(unittest.TestCase):
    # As apt speaks of a source that it unpacks, and of one that it does not.
    APT_GET = """#!/bin/sh
case " $* " in *" source "*) ;; *) exit ;; esac
if [ -d hello-1.0 ]; then
  echo 'Skipping unpack of already unpacked source in hello-1.0'
  exit
fi
mkdir hello-1.0
case $LC_ALL in
  de*) echo 'dpkg-source: Information: hello wird nach hello-1.0 extrahiert' ;;
  *) echo 'dpkg-source: info: extracting hello in hello-1.0' ;;
esac
"""

    def setUp(self):
        self.folder = temporary_folder(self)
        for name, text in (("apt-get", self.APT_GET), ("apt-cache", "#!/bin/sh\necho 'Version: 1.0'\n")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.sources = self.folder / "sources"
        self.sources.mkdir()

    def fetch(self, **variables):
        ended = subprocess.run([SOURCE / "scripts/fetch-source.sh", "hello", self.sources], capture_output=True, text=True, timeout=60,
                               env={**CLEAN, "PATH": f"{self.folder}:{CLEAN['PATH']}", **variables})
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{self.sources}/hello-1.0\n"), ended.stderr)

    def test_apt_may_speak_another_language(self):
        self.fetch(LC_ALL="de_DE.UTF-8")

    def test_half_a_source_is_fetched_again(self):
        """An interrupted run has left it."""
        half = self.sources / "hello-1.0/half"
        half.mkdir(parents=True)
        self.fetch()
        self.assertFalse(half.exists())
        self.assertEqual({path.name for path in self.sources.iterdir()}, {"apt", ".hello.unpacked", "hello-1.0"})

    def test_what_is_there_stays(self):
        self.fetch()
        own = self.sources / "hello-1.0/own"
        own.touch()
        self.fetch()
        self.assertTrue(own.exists())


class Makefile(unittest.TestCase):
    def of(self, goal):
        """What it has installed, and how the build is configured where there is none yet."""
        told = run("make", "-n", "-C", SOURCE, "BUILD=not-there", goal).stdout
        return re.findall(r"^scripts/install-deps\.sh ?(.*)$", told, re.M), re.findall(r"-DBUILD_TESTING=(\w+)", told)

    def test_goals(self):
        for goals, groups, tests in ((("demo", "product", "install", "deb"), ["product"], ["OFF"]), (("wheel",), ["python", "product"], ["OFF"]), (("jar",), ["java", "product"], ["OFF"]),
                                     (("all", "check", "check-full", "docs", "tidy", "breakages"), [""], ["ON"])):
            for goal in goals:
                with self.subTest(goal):
                    self.assertEqual(self.of(goal), (groups, tests))


    def test_a_prefix_that_programs_would_not_be_found_by(self):
        for goal in ("install", "uninstall"):
            for prefix in ("", "~/local", "out", "/opt/my tools", "out /opt"):
                ended = run("make", "-n", "-C", SOURCE, "BUILD=not-there", f"PREFIX={prefix}", goal)
                self.assertEqual(ended.returncode, 2, ended)
                self.assertRegex(ended.stderr, rf"\AMakefile:\d+: \*\*\* PREFIX={prefix}: give an absolute path without a blank\.  [^\n]*\n\Z")
        # Where nothing is installed it does not matter.
        self.assertEqual(run("make", "-n", "-C", SOURCE, "BUILD=not-there", "PREFIX=", "product").returncode, 0)

    def test_a_build_folder_in_which_root_has_installed(self):
        """What cmake has left there does not keep others from installing."""
        build = temporary_folder(self)
        manifest = build / "install_manifest.txt"
        (build / "cmake_install.cmake").write_text(f'file(WRITE "{manifest}" "")\n')
        manifest.symlink_to(build / "not" / "there")  # root could write what is only root's
        ended = run("make", "-C", SOURCE, "-o", "product", f"BUILD={build}", "PREFIX=/usr", f"DESTDIR={build}", "install")
        self.assertEqual(ended.returncode, 0, ended)


class Folders(unittest.TestCase):
    def test_one_with_a_blank_in_its_path(self):
        ended = run("cmake", "-S", SOURCE, "-B", temporary_folder(self) / "a build")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("a build' has a blank in its path", " ".join(ended.stderr.split()))


class Container(unittest.TestCase):
    def setUp(self):
        text = (SOURCE / "packaging/Dockerfile").read_text()
        self.lines = re.sub(r"\\\n", " ", text).splitlines()

    def test_it_has_no_list_of_its_own(self):
        installed = [word for line in self.lines for words in re.findall(r"apt-get install ([^&|;]*)", line) for word in words.split() if not word.startswith("-")]
        self.assertGreater(len(installed), 3)
        for word in installed:
            self.assertRegex(word, r"\A/packages/spillway(-[a-z]+)?_\*\.deb\Z")
        self.assertIn("RUN /source/scripts/install-deps.sh product", self.lines)

    def test_it_has_the_packages_that_are_made(self):
        made = set(re.findall(r"^set\(CPACK_DEBIAN_(\w+)_PACKAGE_SECTION", (SOURCE / "packaging/deb/CMakeLists.txt").read_text(), re.M))
        named = {name.replace("-", "_").upper() for line in self.lines for name in re.findall(r"/packages/(?:spillway-)?([a-z]+)_\*\.deb", line)}
        self.assertLessEqual(named, made)

    def test_it_has_the_stages_that_pages_name(self):
        stages = [line.split(" AS ")[-1] for line in self.lines if line.startswith("FROM ")]
        self.assertEqual(stages[-1], "spillway")  # what is made where none is asked for
        asked_for = re.findall(r"--target (\S+)", (SOURCE / "docs/install.md").read_text())
        self.assertTrue(asked_for)
        self.assertLessEqual(set(asked_for), set(stages))

    def test_it_takes_no_build_of_another_machine_along(self):
        # Not beside the recipe: docker of Debian 12 looks here alone.
        self.assertLessEqual({"build*", ".git"}, set((SOURCE / ".dockerignore").read_text().split()))

    def test_what_it_copies_is_there(self):
        for line in self.lines:
            if copied := re.match(r"COPY (?!--from)(\S+) ", line):
                self.assertTrue((SOURCE / copied[1]).exists(), line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
