# Spillway's front door: each target installs what it needs, and no more, configures and builds.
#   make            build everything into build/ (programs in build/bin)
#   make demo       the main job on real input: SQLite with more data than memory; a first look at it when half of what it needs is built
#   make check      all tests that fit in 25 minutes on two cores; make check-full adds the slow tiers, an hour and a half
#   make breakages  breaks the code on purpose in hundreds of ways and checks that a test notices; for hours
#   make product    only what is installed, without tests
#   make install    PREFIX=/usr/local, DESTDIR for packaging; make uninstall takes it back
#   make deb        packages for Debian; make wheel: for Python; make jar: for Maven; all into build/packages (docs/install.md)
#   make asan tsan  the test suites of src and tools, the server and the command line under the address+undefined and thread sanitizers
#   make docs       writes the reference pages of docs/ that are made from data files
#   make tidy       clang-tidy; make format: clang-format
#   make fuzz       each fuzzer for FUZZ_SECONDS=30, from the inputs of tests/fuzz on; what it learnt stays in build-fuzz/corpus
# JOBS=N compiles so many files at a time, by default one for each processor; TEST_JOBS=N runs so many tests; BUILD=FOLDER is where, instead of build.
PREFIX ?= /usr/local
BUILD ?= build
JOBS ?= $(shell nproc)
# Tests wait for the disk and for each other's processes: storage_test, for one, two thirds of its time.
TEST_JOBS ?= $(shell expr $$(nproc) + 2)
# Where programs of the end-to-end tests spill, that the quick tests wait less for a disk: it answers late at times, as a disk does.
QUICK_STORAGE = fault:read_delay_us=1/100x100,write_delay_us=1/100x200,any_delay_polls=1/10x3:[memory:4G]
FUZZ_SECONDS ?= 30

CONFIGURE = cmake --preset default -B $(BUILD) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" $(if $(wildcard $(BUILD)/build.ninja),--log-level=WARNING)

# The unit names the program by it; systemd and the loader take paths apart at blanks, and not every shell makes a folder of a ~ behind a sign of equality.
ifneq ($(filter install uninstall,$(MAKECMDGOALS)),)
  ifneq ($(words $(filter /%,$(PREFIX))) $(words $(PREFIX)),1 1)
    $(error PREFIX=$(PREFIX): give an absolute path without a blank)
  endif
endif

.PHONY: all setup setup-product setup-python setup-java configure configure-product product demo check check-full breakages install uninstall deb wheel jar asan tsan fuzz docs tidy format clean
# What runs side by side is what a recipe starts: two targets would meet in apt, or in the build folder.
.NOTPARALLEL:
all: configure
	@cmake --build $(BUILD) -j $(JOBS)

setup:
	@scripts/install-deps.sh

setup-product setup-python setup-java:
	@scripts/install-deps.sh $(@:setup-%=%)

configure: setup
	@$(CONFIGURE) -DBUILD_TESTING=ON

# Without tests, which need other packages. A folder that has them keeps them, and what ninja knows of how they were built.
configure-product: setup-product
	@$(CONFIGURE) $(if $(wildcard $(BUILD)/build.ninja),,-DBUILD_TESTING=OFF)

product: configure-product
	@cmake --build $(BUILD) -j $(JOBS) --target product

# First what compiles programs and runs in them, half of the work, and a look at it; then `spillway` itself, and the whole.
demo: configure-product
	@cmake --build $(BUILD) -j $(JOBS) --target spilling
	@python3 -B scripts/demo.py $(BUILD) --first-look
	@cmake --build $(BUILD) -j $(JOBS) --target spillway
	@python3 -B scripts/demo.py $(BUILD)

check: all
	@SPILLWAY_TEST_SEEDS_MOST=1 SPILLWAY_TEST_LEVELS_LEFT_OUT="O0 O3" SPILLWAY_TEST_STORAGE="$(QUICK_STORAGE)" scripts/run_tests.py $(BUILD) -LE slow -j $(TEST_JOBS)

check-full: all
	@scripts/run_tests.py $(BUILD) -j $(TEST_JOBS)

breakages: configure
	@tests/mutations/check_mutations.py --work $(BUILD)/breakages

# Else the loader does not know of libraries that are new in /usr/local/lib, or are there no more, and systemd starts servers by the unit that was there.
TELL_SYSTEM = test -n "$(DESTDIR)" || test $$(id -u) -ne 0 || { /sbin/ldconfig && { test ! -d /run/systemd/system || systemctl daemon-reload || true; }; }

# Others are to use it, whatever root's umask is. The list that cmake leaves in the build folder is root's after `sudo make install`.
install: product
	@rm -f $(BUILD)/install_manifest.txt
	@umask 022; DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"
	@$(TELL_SYSTEM)

uninstall:
	@packaging/uninstall.sh "$(PREFIX)" "$(DESTDIR)"
	@$(TELL_SYSTEM)

deb: product
	@packaging/deb/make_deb.sh $(BUILD)

wheel: setup-python product
	@packaging/make_wheel.sh $(BUILD)

jar: setup-java product
	@packaging/make_jar.sh $(BUILD)

asan tsan: setup
	@cmake --preset $@ -B build-$@
	@cmake --build build-$@ -j $(JOBS)
	@scripts/run_tests.py build-$@ -LE slow -j $(JOBS)

fuzz: setup
	@cmake --preset fuzz -B build-fuzz
	@cmake --build build-fuzz -j $(JOBS) --target fuzzers
	@set -e; for fuzzer in build-fuzz/fuzz/*; do \
	  corpus=build-fuzz/corpus/$${fuzzer##*/}; scripts/fuzz_corpus.py unpack tests/fuzz/$${fuzzer##*/}.hex $$corpus; \
	  echo "fuzzing $${fuzzer##*/} for $(FUZZ_SECONDS) s"; \
	  $$fuzzer -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 -verbosity=0 -artifact_prefix=$$corpus. $$corpus; \
	done

tidy: configure
	@run-clang-tidy-19 -quiet -p $(BUILD) "$(CURDIR)/(src|tools|compiler)/.*"

docs: all
	@set -e; for page in options statistics probes; do $(BUILD)/bin/spillway docs $$page > $(BUILD)/page.md; cp $(BUILD)/page.md docs/$$page.md; done

format:
	@git ls-files '*.h' '*.hpp' '*.cc' '*.cpp' '*.c' | xargs clang-format-19 -i

clean:
	@rm -rf $(BUILD) build-asan build-tsan build-fuzz
