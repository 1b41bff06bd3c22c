# What a person types. Everything is built in build/<preset>; a second run starts at once.
JOBS := $(shell nproc)
BUILD := build/release
SALTUS := $(BUILD)/saltus

.PHONY: help program demo test bench asan clean

help:
	@echo "make demo     build, run the friction model and draw it"
	@echo "make test     build, and run all tests"
	@echo "make bench    build, and run the benchmarks"
	@echo "make asan     build with sanitizers, and run all tests"
	@echo "make clean    remove everything built"
	@echo "Missing Debian packages (packages.txt) are installed, as root or with sudo."

# The program alone: neither the tests nor what they need.
program:
	@cmake/packages packages.txt build draw
	@cmake --preset release $(if $(wildcard $(BUILD)/build.ninja),> $(BUILD)/configure.log,-DSALTUS_TESTS=OFF)
	@cmake --build --preset release -j $(JOBS) --target saltus_cli

demo: program
	@$(SALTUS) run models/dry_friction/model.toml -o build/demo --force
	@echo "The picture is build/demo/plot.svg; 'saltus help' lists what else there is."

test:
	@cmake/packages packages.txt build draw ranks test
	@cmake --preset release -DSALTUS_TESTS=ON $(if $(wildcard $(BUILD)/build.ninja),> $(BUILD)/configure.log)
	@cmake --build --preset release -j $(JOBS)
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

bench:
	@cmake/packages packages.txt build bench
	@cmake --preset release -B build/bench -DSALTUS_BENCH=ON -DSALTUS_TESTS=OFF
	@cmake --build build/bench -j $(JOBS)
	@for program in build/bench/bench/*_bench; do echo "== $$program"; $$program || exit 1; done

asan:
	@cmake/packages packages.txt build draw ranks test
	@cmake --preset asan
	@cmake --build --preset asan -j $(JOBS)
	@cd build/asan && ctest --output-on-failure -j $(JOBS)

clean:
	rm -rf build
