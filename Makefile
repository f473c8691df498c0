# SPDX-License-Identifier: BSD-3-Clause
# The doors. Each target does all set-up by itself; Meson does the building.
#   make              build into build/
#   make demo         the story: a job loses a process and ends right
#   make check        every test; one is enough: make check ONLY=jacobi; longer: HALE_LONG=1;
#                     less side by side: JOBS=1; slow tests of all days: ALL=1
#   make simulate     schedules of faults by a seed: SEED=4711, RUNS=10000 (docs/simulation.md)
#   make bench        measures beside Open MPI and MPICH
#   make install      PREFIX=/usr/local
#   make uninstall    removes what make install has put in place
#   make dist         build/meson-dist/hale-VERSION.tar.gz, of what is committed
#   make deb          Debian packages into build/deb/, of what is committed
#   make docs         three books, as a site and as PDFs, into build/books/html
#   make asan         unit tests and OpenCL programs under AddressSanitizer and UBSan
#   make tsan         OpenCL programs with threads, and tasks, under ThreadSanitizer
#   make lint         layering, format, clang-tidy, cppcheck: of what differs from upstream; ALL=1: of all
#   make fuzz         libFuzzer on the parsers, 30 s each; longer: SECONDS=180; one: ONLY=net

BUILD  ?= build
PREFIX ?= /usr/local
# abspath, and realpath of make, part names at blanks.
full = $$(realpath -m "$(1)")
ONLY   ?=
JOBS   ?=
ALL    ?=
FILES  ?=
MESON  ?= /usr/bin/meson
NINJA  ?= ninja
PYTHON ?= /usr/bin/python3

.DEFAULT_GOAL := build
.PHONY: build demo check simulate bench install uninstall dist deb docs asan tsan lint fuzz clean deps

deps:
	@scripts/deps.sh build demo check bench

# Configured once; later changes of meson.build are noticed by ninja itself. $(1): what is needed,
# $(2): more options of meson setup.
define configure
	@[ ! -t 1 ] || [ -e $(BUILD)/build.ninja ] || echo "Looking at what this machine has ..."
	@scripts/deps.sh $(1)
	@scripts/own_build.sh $(BUILD) "$(CURDIR)"
	@test -e $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix "$(call full,$(PREFIX))" $(2) \
		>$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
endef

# Whoever waits at a terminal sees how far it is; elsewhere a line says that it takes a while.
define compile
	@if [ -t 1 ]; then $(NINJA) -C $(BUILD); else \
		$(NINJA) -C $(BUILD) -n 2>/dev/null | grep -q "no work to do" || \
			echo "Building Hale: some minutes on two cores ..."; \
		$(NINJA) -C $(BUILD) --quiet; fi
endef

build:
	$(call configure,build)
	$(compile)

demo:
	$(call configure,build demo)
	$(compile)
	@HALE_BUILD=$(abspath $(BUILD)) examples/demo.sh

# What make built for users has no unit tests yet.
check:
	$(call configure,build check$(if $(filter-out 0,$(HALE_LONG)), long docs),-Dtests=enabled)
	@grep -q error_test $(BUILD)/build.ninja || $(MESON) configure $(BUILD) -Dtests=enabled >/dev/null
	$(compile)
	@$(PYTHON) scripts/check.py --build $(BUILD) $(if $(JOBS),--jobs $(JOBS)) $(if $(ALL),--all) $(ONLY)

# Schedules of faults under a simulated kernel (docs/simulation.md).
simulate:
	$(call configure,build)
	@$(NINJA) -C $(BUILD) --quiet tests/simulate/hale-simulate
	@$(BUILD)/tests/simulate/hale-simulate --seed $(or $(SEED),1) --runs $(or $(RUNS),1)

bench:
	$(call configure,build bench)
	@$(NINJA) -C $(BUILD) --quiet
	@HALE_BUILD=$(abspath $(BUILD)) bench/run

# The prefix is compiled in: where hale finds its libraries.
install:
	$(call configure,build)
	@{ $(MESON) configure $(BUILD) --prefix "$(call full,$(PREFIX))" && $(NINJA) -C $(BUILD) && \
		$(MESON) install -C $(BUILD) --no-rebuild; } >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@[ "$$(id -u)" != 0 ] || ldconfig
	@echo "Installed under $(PREFIX): try  hale run -n 2 -- hostname"

# Whoever has the same commit gets the same bytes.
dist:
	$(call configure,build)
	@$(MESON) dist -C $(BUILD) --no-tests --formats gztar --allow-dirty >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@ls $(BUILD)/meson-dist/*.tar.gz

deb:
	@scripts/deps.sh build long
	@scripts/deb.sh $(BUILD)/deb

# What make builds is not needed for it.
docs:
	@scripts/deps.sh docs
	@$(PYTHON) scripts/books.py $(BUILD)/books

uninstall:
	@scripts/uninstall.sh $(BUILD)

asan:
	@scripts/deps.sh build check
	@scripts/asan.sh

# Sanitized code draws warnings of its own from gcc 12, wrong ones: not errors here.
tsan:
	@scripts/deps.sh build check
	@test -e build-tsan/build.ninja || $(MESON) setup build-tsan -Dtests=disabled -Db_sanitize=thread \
		-Db_lundef=false -Dbuildtype=debugoptimized -Dwerror=false >/dev/null
	@scripts/tsan_ocl.sh build-tsan
	@scripts/tsan_tasks.sh build-tsan

lint:
	@scripts/deps.sh build check lint
	$(call configure,build)
	@$(NINJA) -C $(BUILD) --quiet
	@$(PYTHON) scripts/lint.py --build $(BUILD) $(if $(ALL),--all) $(FILES)

fuzz:
	@scripts/deps.sh build lint
	@scripts/fuzz.sh $(or $(SECONDS),30) $(ONLY)

clean:
	rm -rf $(BUILD) build-asan build-ubsan build-fuzz $(BUILD).log
