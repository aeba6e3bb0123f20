"""Breakages of what is installed: manual pages, completion, the unit, the way back; and of what is installed before."""

COMPLETION = "packaging/pages/completion.py"
COMMANDS = "packaging/pages/commands.py"
MANUAL = "packaging/pages/manual.py"


def of(name, *patches, test="packaging_install"):
    return {"name": name, "test": ("ctest", f"^{test}$"), "patches": list(patches)}


MUTATIONS = [
    of("a manual page does not say what an option takes", (MANUAL, "    argument = f\" \\\\fI{escaped(option.argument)}\\\\fR\" if option.argument else \"\"\n", "    argument = \"\"\n")),
    of("lines further in are not of the option before", (COMMANDS, "            entry.doc.append(found[1])\n", "            pass\n")),
    of("options that only the usage names are left out", (COMMANDS, "        return self.options + [Entry([name], argument) for name, argument in found.items() if name not in known]\n", "        return self.options\n")),
    of("a line that troff takes for a request", (MANUAL, "if line[:1] in (\".\", \"'\") else line", "if False else line")),
    of("what an option takes is completed as a word of the command", (COMPLETION, "      value=${{_spillway_values[\"$command $this\"]-}}\n", "      value=\n")),
    of("words of which a command takes one are not completed", (COMPLETION, "        return choice[1].replace(\"|\", \" \")\n", "        return \"\"\n")),
    of("a device string is over at its first colon", (COMPLETION, "      value=$before\n      continue\n", "      continue\n")),
    of("options of a program are completed as spillway's", (COMPLETION, "    elif [[ ${{_spillway_operands[$command]-}} == PROGRAM ]]; then\n      break\n", "    elif false; then\n      break\n")),
    of("what is installed is left out of the product", ("src/spill/preload/CMakeLists.txt", "spillway_install(spillway_preload ", "install(TARGETS spillway_preload ")),
    of("a header that a page names is not installed", ("src/spill/CMakeLists.txt", "set(headers spill.h spill.hpp task.h)", "set(headers spill.h task.h)")),
    of("the allocator of spilled memory is one of C++20 alone", ("include/spillway/spill.hpp", "bool operator!=(", "bool differ(")),
    of("spill.h calls what C99 does not have", ("include/spillway/spill.h", ": memalign(alignment, bytes);  // C99", ": aligned_alloc(alignment, bytes);  // C99")),
    of("the unit starts the program of another place", ("tools/spillway/spillway-serve@.service.in", "ExecStart=@CMAKE_INSTALL_PREFIX@/", "ExecStart=/usr/local/")),
    of("a file stays when all is taken back", ("packaging/uninstall.sh", "echo \"$files\" | while", "echo \"$files\" | tail -n +2 | while")),
    of("what an earlier version had installed stays", ("packaging/CMakeLists.txt", "      if(place EQUAL 0)\n", "      if(FALSE)\n")),
    of("a folder that was moved stays, and what lies where it was goes", ("packaging/uninstall.sh", "\"$root$prefix${file#\"$was\"}\"", "\"$root$file\"")),
    of("folders are root's alone where its umask says so", ("Makefile", "umask 022; ", "")),
    of("pkg-config looks in another folder", ("src/capi/spillway-library.pc.in", "/@to_prefix@\n", "/..\n")),
    of("what every /usr/local has goes with the last file", ("packaging/uninstall.sh", " | /usr/local/share/man) return ;;", ") return ;;")),
    of("the demonstration has all that tests need installed", ("Makefile", "configure-product: setup-product\n", "configure-product: setup\n"), test="packaging_dependencies"),
    of("a folder of the product is configured with tests", ("Makefile", "-DBUILD_TESTING=OFF", "-DBUILD_TESTING=ON"), test="packaging_dependencies"),
    of("a group of packages that there is not is none", ("scripts/install-deps.sh", "java and tests\" >&2; exit 2; }", "java and tests\" >&2; continue; }"), test="packaging_dependencies"),
    of("what an interrupted run has left is taken for a source", ("scripts/fetch-source.sh", "work=$folder/.$package.fetched\nrm -rf \"$work\"\nmkdir \"$work\"\n", "work=$folder\n"), test="packaging_dependencies"),
    of("a source is fetched anew each time", ("scripts/fetch-source.sh", "kept && exit\n", ""), ("scripts/fetch-source.sh", "kept && exit  #", "false && exit  #"), test="packaging_dependencies"),
    of("the container has a list of packages of its own", ("packaging/Dockerfile", "RUN make -C /source deb", "RUN apt-get install -y ninja-build && make -C /source deb"), test="packaging_dependencies"),
    of("make installs to any folder of a relative path", ("Makefile", "$(words $(filter /%,$(PREFIX)))", "$(words $(PREFIX))"), test="packaging_dependencies"),
    of("where root has installed others cannot", ("Makefile", "\t@rm -f $(BUILD)/install_manifest.txt\n", ""), test="packaging_dependencies"),
    of("a package that is held is missing", ("scripts/install-deps.sh", "${db:Status-Status}\\n' \"$package\" 2>/dev/null | grep -qx installed", "${Status}' \"$package\" 2>/dev/null | grep -q 'install ok installed'"), test="packaging_dependencies"),
    of("apt alone says that another system has other packages", ("scripts/install-deps.sh", "} || { echo \"install-deps: nothing", "} || exit 1; false && { echo \"install-deps: nothing"), test="packaging_dependencies"),
    of("a stage of the container is not the one that pages name", ("packaging/Dockerfile", "-slim AS compiler\n", "-slim AS spillcc\n"), test="packaging_dependencies"),
    of("a container takes this machine's build along", (".dockerignore", "build*\n", ""), test="packaging_dependencies"),
    of("a folder with a blank in its path is built in until something breaks", ("CMakeLists.txt", "    message(FATAL_ERROR \"'${folder}' has", "    message(STATUS \"'${folder}' has"), test="packaging_dependencies"),
    of("what is of others in what is installed is not named", ("packaging/CMakeLists.txt", "${CMAKE_SOURCE_DIR}/NOTICE DESTINATION", "${CMAKE_SOURCE_DIR}/LICENSE DESTINATION")),
    of("the licence that README leads to stays in the source", ("packaging/CMakeLists.txt", " ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${documents} COMPONENT doc)", " DESTINATION ${documents} COMPONENT doc)")),
    of("a server under systemd has 90 seconds to read its log", ("tools/spillway/spillway-serve@.service.in", "TimeoutStartSec=infinity\n", "")),
    of("a server under systemd has no time to write its index", ("tools/spillway/spillway-serve@.service.in", "TimeoutStopSec=300\n", "TimeoutStopSec=30\n")),
    of("servers under systemd are root", ("tools/spillway/spillway-serve@.service.in", "User=spillway\nDynamicUser=yes\n", "")),
]
