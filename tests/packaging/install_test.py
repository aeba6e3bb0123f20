#!/usr/bin/env python3
"""What `make install` installs: for /usr, into a folder where it is used as it lies, and taken back.  install_test.py SOURCE BUILD WORK"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from shells import completed  # noqa: E402
from support import CLEAN, fresh, take_paths  # noqa: E402

SOURCE, BUILD, WORK = take_paths(3)
ROOT = WORK / "root"
USR = ROOT / "usr"
OPTIONS = ["--" + name.replace("_", "-") for name in re.findall(r"^OPTION\(\s*(\w+),", (SOURCE / "src/base/options.inc").read_text(), re.M)]


def run(*command, **variables):
    ended = subprocess.run([str(word) for word in command], env={**CLEAN, **variables}, capture_output=True, text=True, timeout=200)
    if ended.returncode != 0:
        raise AssertionError(f"{command}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


# What an earlier version is said to have installed: what is there again, what is not, and, if its folder was moved, what may be of others.
EARLIER = ["usr/bin/spillway", "usr/share/spillway/earlier/gone", "opt/of-others", "usr/share/spillway/installed"]


def setUpModule():
    fresh(WORK)
    for name in EARLIER:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text("".join(f"/{each}\n" for each in EARLIER))
    run("cmake", "--install", BUILD, "--prefix", "/usr", "--strip", DESTDIR=str(ROOT))


def files():
    return [path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink()]


def subcommands():
    return [line.split()[1] for line in run(USR / "bin/spillway", "--help").splitlines() if re.match(r"  spillway [a-z]", line)]


class Files(unittest.TestCase):
    def test_none_names_a_folder_of_the_build(self):
        for path in files():
            text = path.read_bytes()
            for folder in (SOURCE, BUILD):
                self.assertNotIn(bytes(folder) + b"/", text, path)
        self.assertGreater(len(files()), 50)

    def test_every_user_may_use_them(self):
        root = WORK / "hardened, with a blank"
        make = ["make", "-C", SOURCE, "-o", "product", f"BUILD={BUILD}", "PREFIX=/usr", f"DESTDIR={root}"]
        run("sh", "-c", 'umask 077 && exec "$@"', "sh", *make, "install")
        installed = list(root.rglob("*"))
        self.assertGreater(len(installed), 50)
        for path in installed:
            wanted = 0o755 if path.is_dir() else 0o444
            if not path.is_symlink():
                self.assertEqual(path.stat().st_mode & wanted, wanted, path)
        run(*make, "uninstall")
        self.assertEqual(list(root.rglob("*")), [root / "usr"])

    def test_of_an_earlier_version_nothing_stays(self):
        again, gone, of_others, the_list = (ROOT / name for name in EARLIER)
        self.assertGreater(again.stat().st_size, 10_000)
        self.assertFalse(gone.parent.exists())
        self.assertTrue(of_others.exists())
        self.assertNotIn("gone", the_list.read_text())

    def test_make_product_builds_each(self):
        for folder in ("bench", "bindings", "compiler", "packaging", "src", "tools"):
            for path in (SOURCE / folder).rglob("CMakeLists.txt"):
                self.assertNotIn("install(TARGETS", path.read_text(), f"{path}: spillway_install() does it, and makes it part of the product")

    def test_pkg_config_finds_what_lies_beside(self):
        found = list(USR.rglob("*.pc"))
        self.assertGreater(len(found), 3)
        for file in found:
            for name, folder in (("includedir", USR / "include"), ("libdir", file.parent.parent)):
                self.assertEqual(pathlib.Path(run("pkg-config", f"--variable={name}", file).strip()).resolve(), folder)

    @staticmethod
    def unit():
        return (USR / "lib/systemd/system/spillway-serve@.service").read_text()

    def test_the_unit_starts_the_program_that_is_there(self):
        self.assertIn("\nExecStart=/usr/bin/spillway serve ", self.unit())
        self.assertTrue((USR / "bin/spillway").exists())

    def test_the_unit_is_made_where_it_is_installed(self):
        """One in the build folder would be root's after `sudo make install`."""
        in_the_build = BUILD / "tools/spillway/spillway-serve@.service"
        in_the_build.write_text("")
        self.addCleanup(in_the_build.unlink)
        root = fresh(WORK / "runtime")
        run("cmake", "--install", BUILD, "--component", "runtime", "--prefix", "/usr", DESTDIR=str(root))
        self.assertEqual(in_the_build.read_text(), "")
        self.assertEqual((root / "usr/lib/systemd/system/spillway-serve@.service").read_text(), self.unit())

    def test_the_unit_gives_no_rights(self):
        said = dict(re.findall(r"^(\w+)=(.*)$", self.unit(), re.M))
        self.assertEqual((said["User"], said["DynamicUser"], said["StateDirectory"], said["CapabilityBoundingSet"]), ("spillway", "yes", "spillway/%i", ""))
        self.assertEqual((said["ProtectSystem"], said["SystemCallFilter"], said["UMask"]), ("strict", "@system-service", "0077"))
        for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "RestrictNamespaces", "RestrictSUIDSGID", "MemoryDenyWriteExecute", "ProtectKernelModules"):
            self.assertEqual(said[name], "yes", name)
        # Its words are for a user without rights.
        self.assertNotIn("--user", said["ExecStart"])

    def test_the_unit_lets_a_server_begin_however_much_it_has_to_read(self):
        self.assertIn("\nType=notify\n", self.unit())
        self.assertIn("\nTimeoutStartSec=infinity\n", self.unit())

    def test_the_unit_lets_a_server_write_its_index_at_the_end(self):
        [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", self.unit(), re.M)
        self.assertGreaterEqual(int(seconds), 10 + 10e9 / 100e6)  # those for clients, and 10 GB at 100 MB/s

    def test_what_is_of_others_is_named(self):
        # The packages that it is built with, whose code or whose headers' code is in it.
        named = {"libjemalloc-dev": "jemalloc", "libxxhash-dev": "xxHash", "nlohmann-json3-dev": "JSON for Modern C++", "libssl-dev": "OpenSSL", "llvm-19-dev": "LLVM"}
        unnamed = {"systemtap-sdt-dev", "libpmemobj-dev"}  # in the public domain; linked as a library, by benchmarks alone
        listed = run(SOURCE / "scripts/install-deps.sh", "--list", "product").split()
        self.assertEqual({name for name in listed if name.endswith("-dev")} - {"dpkg-dev"}, set(named) | unnamed)
        notice = (USR / "share/doc/spillway/copyright").read_text()
        for name in named.values():
            self.assertRegex(notice, rf"(?m)^{re.escape(name)}\W")

    def test_readme_leads_to_what_lies_beside_it(self):
        documents = USR / "share/doc/spillway"
        for name in ("README.md", "CONTRIBUTING.md"):
            for link in re.findall(r"\]\(([\w./-]+)", (documents / name).read_text()):
                self.assertTrue((documents / link).exists(), link)

    def test_one_version(self):
        version = re.search(r"project\(spillway VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertEqual(run(USR / "bin/spillway", "--version"), f"spillway {version}\n")
        self.assertIn(f'\nversion = "{version}"\n', (SOURCE / "bindings/python/pyproject.toml").read_text())
        self.assertIn(f"<version>{version}</version>", (SOURCE / "bindings/java/pom.xml").read_text())
        for page, count in (("install.md", 3), ("kv-api.md", 1)):
            named = re.findall(r"(?:spillway-kv[-:]|-Dversion=)(\d+\.\d+\.\d+)", (SOURCE / "docs" / page).read_text())
            self.assertEqual(named, [version] * count, page)


class Headers(unittest.TestCase):
    # What those need that are not for C99 and C++11.
    STANDARDS = {"batch.hpp": ["c++17", "c++23"], "spill.hpp": ["c++17", "c++23"], "task.h": ["c++14", "c++23"]}

    def test_each_is_there_and_stands_alone(self):
        folder = USR / "include/spillway"
        self.assertEqual({path.name for path in folder.iterdir()},
                         {path.name for path in (SOURCE / "include/spillway").iterdir() if path.suffix in (".h", ".hpp")})
        for header in folder.iterdir():
            for standard in self.STANDARDS.get(header.name, ["c99", "c11", "c++11", "c++23"]):
                source = WORK / ("header.cc" if standard.startswith("c++") else "header.c")
                source.write_text(f"#include <spillway/{header.name}>\n")
                run("clang-19", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{USR}/include", source)

    def test_containers_with_the_allocator(self):
        source = pathlib.Path(__file__).with_name("containers.cc")
        for standard in ("c++17", "c++20"):
            for name, compiler in (("native", "clang++-19"), ("spilled", USR / "bin/spillc++")):
                run(compiler, f"-std={standard}", "-O1", f"-I{USR}/include", source, "-o", WORK / name)
            run(WORK / "native")
            run(USR / "bin/spillway", "run", "--memory", "4M", "--storage", WORK, "--", WORK / "spilled")


class Programs(unittest.TestCase):
    def test_a_program_is_compiled_and_outgrows_its_memory(self):
        for name, compiler in (("native", "clang-19"), ("spilled", USR / "bin/spillcc")):
            run(compiler, "-O2", pathlib.Path(__file__).with_name("outgrows.c"), "-o", WORK / name)
        spilled = run(USR / "bin/spillway", "run", "--memory", "4M", "--storage", WORK, "--stats", WORK / "stats.json", "--", WORK / "spilled", 16)
        self.assertEqual(spilled, run(WORK / "native", 16))
        self.assertGreater(json.loads((WORK / "stats.json").read_text())["cache"]["evictions"], 1000)


class Manual(unittest.TestCase):
    def text(self, name):
        return (USR / f"share/man/man1/{name}.1").read_text().replace("\\-", "-")

    def test_every_command_has_a_page(self):
        names = {"spillway", "spillcc", "spillc++", *(f"spillway-{name}" for name in subcommands())}
        self.assertEqual({path.stem for path in (USR / "share/man/man1").iterdir()}, names)
        self.assertGreater(len(names), 12)

    def test_pages_say_what_help_says(self):
        text = self.text("spillway-run")
        self.assertGreater(len(OPTIONS), 20)
        for option in OPTIONS:
            self.assertIn(f"\\fB{option}\\fR", text)
        self.assertIn("\\fB--memory\\fR \\fISIZE\\fR\nmemory for frames", text)
        self.assertIn("\n.br\ndefault 4096, variable SPILLWAY_PAGE\n", text)
        self.assertIn(".SH NAME\nspillway-run - run a program within a memory budget\n", text)
        kv = self.text("spillway-kv")
        for words in (".SS spillway kv compact\n", "\\fB--durability\\fR \\fInone|batch|sync\\fR\n", "\\fB--if-version\\fR \\fIVERSION\\fR\n"):
            self.assertIn(words, kv)
        self.assertIn("\\fB-t\\fR, \\fB--threads\\fR", self.text("spillway-serve"))
        self.assertIn("\\fBkernels\\fR\n", self.text("spillway-bench"))
        self.assertIn("\\fB-fspill-globals[=SIZE]\\fR\n", self.text("spillc++"))

    @unittest.skipIf(shutil.which("groff") is None, "needs apt-get install groff-base")
    def test_troff_has_nothing_to_say(self):
        for page in (USR / "share/man/man1").iterdir():
            ended = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, timeout=60)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), page)


class Completion(unittest.TestCase):
    def offers(self, *words):
        return completed("bash", str(USR / "share"), words)

    def test_subcommands(self):
        self.assertEqual(set(self.offers("spillway", "")), set(subcommands()))
        self.assertEqual(self.offers("spillway", "to"), ["top"])
        self.assertEqual(set(self.offers("spillway", "kv", "c")), {"check", "compact"})
        self.assertEqual(self.offers("spillway", "persist", "r"), ["run"])

    def test_options(self):
        self.assertEqual(set(self.offers("spillway", "run", "-")), {*OPTIONS, "--help"})
        self.assertEqual(set(self.offers("spillway", "kv", "put", "--if-")), {"--if-absent", "--if-present", "--if-version"})
        self.assertEqual(self.offers("spillway", "top", "--o"), ["--once"])
        self.assertEqual(self.offers("spillway", "persist", "check", "--l"), ["--log"])
        self.assertIn("-t", self.offers("spillway", "serve", "-"))

    def test_values(self):
        self.assertEqual(self.offers("spillway", "kv", "load", "--durability", ""), ["none", "batch", "sync"])
        self.assertEqual(self.offers("spillway", "kv", "load", "--durability", "=", "s"), ["sync"])
        self.assertEqual(self.offers("spillway", "run", "--policy", ""), ["clock", "lru", "2q", "random", "s3fifo", "nrlfu", "auto"])
        self.assertEqual(self.offers("spillway", "run", "--log-format", "=", "j"), ["json"])
        self.assertEqual(self.offers("spillway", "persist", "run", "--domain", "f"), ["flush_on_fail", "file"])
        self.assertEqual(self.offers("spillway", "docs", ""), ["options", "statistics", "probes"])
        self.assertEqual(self.offers("spillway", "run", "--memory", ""), [])
        self.assertIn(str(WORK / "root"), self.offers("spillway", "run", "--storage", f"{WORK}/r"))
        self.assertIn(str(WORK / "root"), self.offers("spillway", "kv", "get", f"{WORK}/r"))

    def test_device_strings(self):
        """bash takes them apart at each colon."""
        for words in (["run", "--storage", "file", ":"], ["run", "--storage", "=", "file", ":"], ["kv", "get", "file", ":"]):
            self.assertIn(str(WORK / "root"), self.offers("spillway", *words, f"{WORK}/r"), words)
        for device in (["file", ":", f"{WORK}/root"], ["latency", ":", "us", "=", "5", ":", f"[{WORK}/root]"]):
            self.assertEqual(self.offers("spillway", "run", "--storage", *device, "--verb"), ["--verbose"], device)

    def test_benchmarks(self):
        names = re.search(r"^BENCHMARKS = \[(.*?)\]", (SOURCE / "bench/driver/bench.py").read_text(), re.M | re.S)[1]
        self.assertLessEqual(set(re.findall(r'"([\w-]+)"', names)), set(self.offers("spillway", "bench", "")))

    def test_the_words_of_a_program_are_its_own(self):
        for before in (["--"], ["--memory", "4G", "--"], ["--clean=0"], ["--clean", "=", "0", "--"], ["--verbose"]):
            self.assertIn("printf", self.offers("spillway", "run", *before, "prin"), before)
        self.assertEqual(self.offers("spillway", "run", "--", "tar", "--"), [])
        self.assertIn(str(WORK / "root"), self.offers("spillway", "run", "tar", f"{WORK}/r"))

    def test_the_compilers_and_clangs_options(self):
        for compiler in ("spillcc", "spillc++"):
            path = str(USR / "bin" / compiler)
            file = USR / "share/bash-completion/completions" / compiler
            self.assertIn(f" {compiler}\n", file.read_text())
            script = (f"source {file}; for word in -fspill- -fsyntax-o; do COMP_WORDS=({path} $word) COMP_CWORD=1; "
                      f"_{compiler.replace('+', 'x')} {path}; echo ${{COMPREPLY[@]}}; done")
            own, clangs = run("bash", "--norc", "-c", script).splitlines()
            self.assertLessEqual({"-fspill-globals", "-fspill-globals=", "-fspill-bodies=2", "-fspill-translation=table", "-fspill-persist=record"}, set(own.split()))
            self.assertEqual(clangs, "-fsyntax-only")


# Last, as the order of names has it.
class Uninstalled(unittest.TestCase):
    def test_nothing_is_left(self):
        other = USR / "share/spillway/of-others"
        other.write_text("kept")
        uninstall = SOURCE / "packaging/uninstall.sh"
        run(uninstall, "/usr", ROOT)
        self.assertEqual(set(USR.rglob("*")), {other, other.parent, other.parent.parent})
        other.unlink()
        ended = subprocess.run([uninstall, "/usr", ROOT], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"\Auninstall: [^\n]*installed nothing[^\n]*\n\Z")

    def test_of_a_folder_that_was_moved(self):
        """Where it was another one lies now."""
        root = fresh(WORK / "moved")
        names = ["bin/spillway", "share/spillway/installed"]
        for folder in ("was", "is"):
            for path in (root / "opt" / folder / name for name in names):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"/opt/was/{name}\n" for name in names))
        run(SOURCE / "packaging/uninstall.sh", "/opt/is", root)
        self.assertEqual(list((root / "opt/is").rglob("*")), [])
        self.assertEqual({str(path.relative_to(root / "opt/was")) for path in root.rglob("*") if path.is_file()}, set(names))

    def test_what_every_usr_local_has_stays(self):
        files = [f"/usr/local/{name}" for name in ("bin/spillway", "libexec/spillway/load", "share/man/man1/spillway.1", "share/spillway/installed")]
        for prefix in ("/usr/local", "/usr/local/"):
            root = fresh(WORK / "local")
            for file in files:
                (root / file[1:]).parent.mkdir(parents=True)
                (root / file[1:]).write_text("".join(f"{name}\n" for name in files))
            run(SOURCE / "packaging/uninstall.sh", prefix, root)
            self.assertEqual({str(path.relative_to(root / "usr/local")) for path in (root / "usr/local").rglob("*")}, {"bin", "share", "share/man"}, prefix)


if __name__ == "__main__":
    unittest.main(verbosity=2)
