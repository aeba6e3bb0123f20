#!/usr/bin/env python3
"""The .deb packages in a Debian with nothing else in it: installed, upgraded, used, removed.  deb_test.py SOURCE BUILD WORK

Prints each command and what it says.
"""
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from machine import HOME, Machine, call, check, make_machine, need_machine  # noqa: E402
from shells import completed  # noqa: E402
from support import CLEAN, fresh, status_of, take_paths  # noqa: E402

PACKAGES = ["spillway", "spillway-bench", "spillway-compiler", "spillway-dev", "spillway-doc"]
BESIDE = ["man-db", "bash-completion", "zsh", "fish", "pkg-config"]  # what is tried needs these
CXX = """#include <iostream>
#include <map>
#include <string>
int main() {
  std::map<std::string, int> numbers;
  for (int i = 0; i < 100000; ++i) numbers["word" + std::to_string(i)] = i;
  std::cout << numbers.rbegin()->first << std::endl;
}
"""


def ours(machine):
    """Paths that are called after us."""
    return [path for path in machine.paths() if re.search(r"spillway|/spillc[c+]", path, re.I)]


def check_packages(source, build, work):
    """They belong to root, who alone may write them, are for all to read, name no folder of the build, and say under what licences they are; packages of
    others find the one with the libraries."""
    for deb in sorted((build / "packages").glob("*.deb")):
        call(["dpkg-deb", "--info", deb])
        for line in call(["dpkg-deb", "--contents", deb], lines=2).splitlines():
            check(re.match(r"(l.{9}|drwxr-xr-x|-rw.r-.r-.) root/root ", line), f"{deb}: {line}")
        unpacked = work / deb.name
        call(["dpkg-deb", "--raw-extract", deb, unpacked])
        for path in unpacked.rglob("*"):
            if path.is_file() and not path.is_symlink():
                text = path.read_bytes()
                check(not any(bytes(folder) + b"/" in text for folder in (source, build)), f"{path} names a folder of the build")
        name = deb.name.split("_")[0]
        check((unpacked / "usr/share/doc" / name / "copyright").read_text() == (source / "NOTICE").read_text(), f"{deb} has other licences")
        if name == "spillway":
            told = re.findall(r"^(\S+) 0 spillway \(>= \S+\)$", (unpacked / "DEBIAN/shlibs").read_text(), re.M)
            libraries = {path.name.removesuffix(".so.0") for path in (unpacked / "usr/lib").glob("*.so.0")}
            check(len(libraries) > 3 and set(told) == libraries, f"shlibs has {told}")


def copy_packages(build, folder):
    """These alone: wheels and jars lie beside them, and come and go."""
    folder.mkdir()
    for deb in (build / "packages").glob("*.deb"):
        shutil.copy(deb, folder)


def make_image(stage, source, build, machine):
    """Makes the machine, by hand, the image of this stage of packaging/Dockerfile; what the stage says of what is started there."""
    recipe = (source / "packaging/Dockerfile").read_text().replace("\\\n", "")
    steps, = re.findall(rf"^FROM \S+ AS {stage}\n(.*?)(?=^FROM |\Z)", recipe, re.M | re.S)
    copy_packages(build, machine.root / "packages")
    for line in re.findall(r"^RUN (.*)$", steps, re.M):
        machine.type(line, folder="")
    check(not (machine.root / "packages").exists(), f"the image {stage} has the packages in it")
    return dict(re.findall(r"^(USER|ENTRYPOINT|CMD) (.*)$", steps, re.M))


def check_image_of_programs(machine, said):
    """What it starts, as the user that it has."""
    check(machine.packages() & set(PACKAGES) == {"spillway"}, "the image has other packages than spillway")
    program = ["setpriv", f"--reuid={said['USER']}", f"--regid={said['USER']}", "--clear-groups", *json.loads(said["ENTRYPOINT"])]
    check("spillway serve" in machine.call(*program, *json.loads(said["CMD"])), "what the image starts says something else")
    machine.call(*program, "kv", "make", "/var/lib/spillway/store", "--capacity", "64M")


def check_image_of_the_compiler(machine, said):
    """What it starts, and that programs are built in it."""
    machine.call(*json.loads(said["CMD"]), "-c", "spillcc --version")
    check_program(machine)


def check_program(machine):
    shutil.copy(HERE / "outgrows.c", machine.home)
    machine.call("spillcc", "-O2", "outgrows.c", "-o", "outgrows")
    machine.call("clang-19", "-O2", "outgrows.c", "-o", "native")
    spilled = machine.call("spillway", "run", "--memory", "32M", "--storage", "/var/tmp", "--stats", "stats.json", "--verbose", "--", "./outgrows", "256")
    check(machine.call("./native", "256").strip() in spilled.splitlines(), "the spilled program says something else")
    counted = json.loads((machine.home / "stats.json").read_text())
    print(f"peak of memory {counted['memory']['peak_bytes'] >> 20} MiB, evictions {counted['cache']['evictions']}")
    check(counted["cache"]["evictions"] > 40_000, "256 MiB in 32 without evictions")
    machine.call("spillcc", "-O2", "-static", "outgrows.c", "-o", "static")
    check(machine.call("./static", "1") == machine.call("./native", "1"), "the static program says something else")
    (machine.home / "words.cc").write_text(CXX)
    machine.call("spillc++", "-O2", "words.cc", "-o", "words_of")
    check(machine.call("spillway", "run", "--memory", "8M", "--", "./words_of") == "word99999\n", "the C++ program says something else")


def exchange(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request + b"quit\r\n")
        answer = b""
        while more := client.recv(1 << 16):
            answer += more
    print(f"{request!r} -> {answer!r}")
    return answer


def check_server(machine):
    """Twice: what was stored is there after a restart."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*machine.into, "spillway", "serve", "--storage", "/var/tmp/items", "--capacity", "64M", "--memory", "32M", "--memcache", str(port)]
    for request, expected in ((b"set greeting 0 0 5\r\nhello\r\n", b"STORED\r\n"), (b"get greeting\r\n", b"VALUE greeting 0 5\r\nhello\r\nEND\r\n")):
        print("$", " ".join(map(str, command)), "&", flush=True)
        server = subprocess.Popen([str(word) for word in command], env=CLEAN)
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    check(server.poll() is None, "the server ends")
                    time.sleep(0.1)
            check(exchange(port, request) == expected, "another answer")
            server.send_signal(signal.SIGTERM)
            check(server.wait(timeout=60) == 0, "the server does not end well")
        finally:
            server.kill()
            server.wait()


def check_library(machine):
    flags = machine.call("pkg-config", "--cflags", "--libs", "spillway-kv").split()
    machine.call("clang-19", "/usr/share/doc/spillway/examples/kv_example.c", "-o", "kv_example", *flags)
    check(machine.call("./kv_example", "words", "spill", "way").split() == ["spill", "1", "way", "1"], "the example counts otherwise")


def check_beside(machine):
    """Manual pages, completion, the unit, benchmarks, documents."""
    for page in ("spillway", "spillway-run", "spillway-kv", "spillcc", "spillc++"):
        check(page.upper() in machine.call("man", "-P", "cat", page, lines=4), f"no manual page of {page}")
    for shell in ("bash", "zsh", "fish"):
        def offers(*words):
            return completed(shell, "/usr/share", words, machine.into)
        check({"run", "serve", "kv"} <= set(offers("spillway", "")), f"{shell}: {offers('spillway', '')}")
        check({"--memory", "--storage"} <= set(offers("spillway", "run", "--")), f"{shell}: options")
        check({"put", "get"} <= set(offers("spillway", "kv", "")), f"{shell}: subcommands of kv")
        check("--if-absent" in offers("spillway", "kv", "put", "--i"), f"{shell}: options of kv put")
        check(set(offers("spillway", "kv", "load", "--durability", "")) >= {"none", "batch", "sync"}, f"{shell}: values")
        check("kernels" in offers("spillway", "bench", "k"), f"{shell}: benchmarks")
        program = offers("spillway", "run", "--memory", "4G", "--", "prin")
        check("printf" in program or program == ["at 1 of prin"], f"{shell}: a program: {program}")
        print(f"{shell}: completes")
    found = machine.call("bash", "-c", ". /usr/share/bash-completion/bash_completion; for name in spillway spillc++; do _completion_loader $name; complete -p $name; done")
    check("-F _spillway spillway" in found and "-F _spillcxx spillc++" in found, "bash-completion does not find it")
    check(set(completed("fish", "/usr/share", ["spillcc", "-fspill-g"], machine.into)) >= {"-fspill-globals"}, "fish: options of spillcc")
    unit = (machine.root / "usr/lib/systemd/system/spillway-serve@.service").read_text()
    check("ExecStart=/usr/bin/spillway serve" in unit, unit)
    check(not list((machine.root / "etc/systemd").rglob("*spillway*")), "the unit is enabled")
    machine.call("spillway", "bench", "kernels", "--quick", "--only", "sort", "--out", "bench")
    check((machine.home / "bench/kernels.svg").exists(), "no plot")
    check((machine.root / "usr/share/doc/spillway/docs/spill.md").exists(), "no documents")


def test(source, build, work):
    need_machine()
    call(["sh", "-c", 'umask 077 && exec "$@"', "sh", source / "packaging/deb/make_deb.sh", build])
    debs = sorted((build / "packages").glob("*.deb"))
    check({deb.name.split("_")[0] for deb in debs} == set(PACKAGES), f"other packages: {debs}")
    fresh(work)
    check_packages(source, build, work)
    try:
        machine = make_machine(work / "root")
        for stage, check_image in (("spillway", check_image_of_programs), ("compiler", check_image_of_the_compiler)):
            image = Machine(work / stage)
            call(["cp", "-a", machine.root, image.root])
            check_image(image, make_image(stage, source, build, image))
            shutil.rmtree(image.root)
        machine.call("apt-get", "install", "-y", "--no-install-recommends", *BESIDE)
        check(not ours(machine), "it is not clean")
        copy_packages(build, machine.root / "debs")
        with machine.systemd():
            machine.call("apt-get", "install", "-y", "--no-install-recommends", *(f"/debs/{deb.name}" for deb in debs))
            check("daemon-reload" in machine.told_systemd(), "systemd goes on with the unit that was there before")
            upgraded, = (deb.name for deb in debs if deb.name.startswith("spillway_"))
            machine.call("dpkg", "--install", f"/debs/{upgraded}")
            check(machine.told_systemd() == ["daemon-reload"], "an upgrade ends servers, or leaves systemd the unit of before")
        check_program(machine)
        check_server(machine)
        check_library(machine)
        check_beside(machine)
        for path in (f"{HOME}/words", "var/tmp/items"):
            (machine.root / path).unlink()
        with machine.systemd():
            machine.call("apt-get", "purge", "-y", *PACKAGES)
            check(machine.told_systemd() == ["stop spillway-serve@*.service", "daemon-reload"], "servers stay, or their unit")
        left = ours(machine)
        check(not left, f"left: {left}")
        check(not machine.packages() & set(PACKAGES), "packages of ours stay")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(status_of("deb_test", test, *take_paths(3)))
