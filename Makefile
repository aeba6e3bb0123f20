# Spillway's front door: each target sets up what it needs, configures and builds.
#   make            build everything into build/ (programs in build/bin)
#   make demo       the main job on real input: SQLite with more data than memory
#   make check      all tests that fit in 25 minutes on two cores; make check-full adds the slow tiers
#   make install    PREFIX=/usr/local, DESTDIR for packaging
#   make asan tsan  the runtime's test suites under the address+undefined and thread sanitizers
PREFIX ?= /usr/local
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all setup configure demo check check-full install asan tsan format clean
all: configure
	@cmake --build $(BUILD) -j $(JOBS)

setup:
	@scripts/install-deps.sh

configure: setup
	@cmake --preset default -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(if $(wildcard $(BUILD)/build.ninja),--log-level=WARNING)

demo: all
	@scripts/demo.sh $(BUILD)

check: all
	@cd $(BUILD) && ctest --output-on-failure -LE slow -j $(JOBS)

check-full: all
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

install: all
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

asan tsan: setup
	@cmake --preset $@ -B build-$@
	@cmake --build build-$@ -j $(JOBS)
	@cd build-$@ && ctest --output-on-failure -LE slow -j $(JOBS)

format:
	@git ls-files '*.h' '*.cc' '*.cpp' '*.c' | xargs clang-format-19 -i

clean:
	@rm -rf $(BUILD) build-asan build-tsan
