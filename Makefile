# `make` builds; `make help` lists the rest. CMake does the work; this file finds out what the
# machine lacks (tools/need.sh) and knows the order of things.
BUILD := build
JOBS := $(shell nproc)
PREFIX ?= /usr/local

# Each time: CMake searches again for what it did not find, so a package that was installed since
# counts. A tree keeps the generator that it began with. CMAKE_OPTIONS: more for CMake, as -D...
configure = CMAKE_GENERATOR=$$(command -v ninja >/dev/null && echo Ninja || echo Unix Makefiles) \
	cmake --preset release -B $(BUILD) --log-level=NOTICE >/dev/null $(CMAKE_OPTIONS)
# For make install alone, a new tree has no tests. make test adds them.
without_tests = $$([ -f $(BUILD)/CMakeCache.txt ] || \
	echo -DFERRY_TESTS=OFF -DFERRY_EXAMPLES=OFF -DFERRY_BENCH=OFF)
compile = cmake --build $(BUILD) --parallel $(JOBS)
# Without what this make would tell the makes that tests start. Many wait more than they compute.
ctest = env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS ctest --test-dir $(BUILD) --output-on-failure

.PHONY: build configure demo test bench install verify soak format clean help
.DEFAULT_GOAL := build

build: ## build everything into build/
	@sh tools/need.sh build
	@$(configure)
	@$(compile)

configure: # let CMake look again at what is installed
	@$(configure)

demo: ## refine a coastline, unbalanced and balanced; draws pictures into demo/
	@sh tools/need.sh build
	@$(configure)
	@$(compile) --target mesh ferry_command
	@BUILD=$(BUILD) sh apps/mesh/demo.sh

test: ## build and run tests of each kind, sanitizer builds included
	@sh tools/need.sh test
	@$(configure)
	@$(compile)
	@options=$$(sh tests/soak/only.sh release $(BUILD)) && \
		sh tools/cost.sh $(BUILD) $(ctest) --parallel $(shell expr 2 '*' $(JOBS)) $$options

bench: ## run every benchmark, the long form; as root installs what Ferry is compared with
	@sh tools/need.sh build
	@sh tools/need.sh bench || echo "ferry: what is missing will be reported as absent"
	@$(configure)
	@$(compile)
	@for b in $(BUILD)/bench/*; do [ ! -f "$$b" ] || "$$b" || exit 1; done

install: ## build and install into PREFIX (default /usr/local); no tests, examples or benchmarks
	@sh tools/need.sh install
	@$(configure) $(without_tests) -DCMAKE_INSTALL_PREFIX="$(abspath $(PREFIX))"
	@$(compile) --target installed
	@cmake --install $(BUILD)

verify: ## check the protocols' models exhaustively
	@sh tools/need.sh verify
	@sh tests/models/run.sh

SOAK ?= 20
KILLS ?= 1000
TRAFFIC_S ?= 7200
BUSY_S ?= 1800
POLYGONS ?= 100000
soak: ## all release tests SOAK times (default 20), all of sanitizer builds, then kill ranks in KILLS runs (1000)
	@sh tools/need.sh test
	@$(configure)
	@$(compile)
	@TESTS_WHOLE=1 $(ctest) --label-exclude 'variant|house|install' --repeat until-fail:$(SOAK)
	@TESTS_WHOLE=1 $(ctest) --tests-regex '^[at]san_'
	@sh tests/soak/busy.sh $(BUILD) $(BUSY_S)
	@$(BUILD)/tests/soak $(BUILD) $(KILLS)
	@sh tests/soak/traffic.sh $(BUILD)/tests/sim_traffic $(TRAFFIC_S)
	@sh tests/soak/traffic.sh $(BUILD)/tests/mixed $(TRAFFIC_S)
	@ulimit -c 0; $(BUILD)/tests/crashes $(BUILD)/tests/program_crashing $(KILLS)
	@$(BUILD)/tests/mesh_fuzz_polygons apps/data/jutland.poly $(POLYGONS)
	@FERRY_RANKS=16 FERRY_HEAP_BYTES=256M $(BUILD)/tests/cell_fairness 50000000
	@seed=$$(date +%s) && $(BUILD)/tests/cell_kill_test 5000 $$seed && $(BUILD)/tests/cell_step_test 7 $$seed && \
		$(BUILD)/tests/scribble 2000 $$seed && \
		FERRY_RANKS=5 $(BUILD)/tests/test_cell_mixed 1000000 $$seed && \
		FERRY_PORT=sim FERRY_RANKS=5 $(BUILD)/tests/test_cell_mixed 100000 $$seed
	@FERRY_RANKS=2 FERRY_HEAP_BYTES=2G $(BUILD)/apps/ft B
	@FERRY_RANKS=2 FERRY_HEAP_BYTES=1G $(BUILD)/apps/mg B
	@sh tests/sim/mutants.sh $(BUILD)/bin/ferry . all
	@sh tests/sim/compilers.sh $(BUILD)/bin/ferry . $(BUILD)/tests/sim_workload \
		$(BUILD)/bench/papers/synthetic all

format: ## format the sources as .clang-format says (clang-format 14)
	@sh tools/need.sh format
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean: ## remove build/ and demo/
	@rm -rf $(BUILD) demo

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile
