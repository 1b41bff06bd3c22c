# What a person types. Everything is built in build/<preset>; a second run starts at once.
JOBS := $(shell nproc)
BUILD := build/release
SALTUS := $(BUILD)/saltus

.PHONY: help program edit native python demo test test-slow tidy site deb archive bench asan tsan fuzz clean

help:
	@echo "make demo     build, run the friction model and draw it"
	@echo "make native   build the program with the compiler of machine code for long runs (LLVM)"
	@echo "make python   build the Python package: build/python"
	@echo "make test     build, and run all tests"
	@echo "make test-slow  the tests that take minutes: installing from a clean copy, packages"
	@echo "make tidy     clang-tidy on what differs from main"
	@echo "make site     the documentation as pages with a search box: build/site/index.html"
	@echo "make deb      Debian packages: build/deb/packages; make archive: a .tar.gz that runs from any place"
	@echo "make bench    build, and run the benchmarks"
	@echo "make edit     build the program quickly, in small batches, for those who change it: build/edit/saltus"
	@echo "make asan     build with sanitizers, and run all tests"
	@echo "make tsan     build with the thread sanitizer, and run the tests of many runs at once"
	@echo "make fuzz     build with clang, and feed every reader and 'run' with mutated input"
	@echo "make clean    remove everything built"
	@echo "Missing Debian packages (packages.txt) are installed, as root or with sudo."

# The program alone: neither the tests nor what they need.
program:
	@cmake/packages packages.txt build draw
	@cmake --preset release $(if $(wildcard $(BUILD)/build.ninja),> $(BUILD)/configure.log,-DSALTUS_TESTS=OFF)
	@cmake --build --preset release -j $(JOBS) --target saltus_cli

# The program for those who change it: ten files at a time, so that little of what was not touched is compiled again.
edit:
	@cmake/packages packages.txt build native edit
	@cmake --preset edit
	@cmake --build --preset edit -j $(JOBS) --target saltus_cli

# The program and the module that makes machine code.
native:
	@cmake/packages packages.txt native
	@$(MAKE) --no-print-directory program
	@echo "Long runs use machine code from now on; docs/method/native.md tells when."

# The Python package; its module holds all of saltus, so it needs no other part.
python:
	@cmake/packages packages.txt build python
	@cmake --preset release -DSALTUS_PYTHON=ON $(if $(wildcard $(BUILD)/build.ninja),> $(BUILD)/configure.log,-DSALTUS_TESTS=OFF)
	@cmake --build --preset release -j $(JOBS) --target saltus_python
	@ln -sfn release/python build/python
	@echo "PYTHONPATH=build/python python3 -c 'import saltus' now works; docs/python.md tells what to do with it."

demo: program
	@$(SALTUS) run models/dry_friction/model.toml -o build/demo --force
	@echo "The picture is build/demo/plot.svg; 'saltus help' lists what else there is."

test:
	@cmake/packages packages.txt build draw ranks native python test web
	@cmake --preset release -DSALTUS_TESTS=ON -DSALTUS_PYTHON=ON $(if $(wildcard $(BUILD)/build.ninja),> $(BUILD)/configure.log)
	@cmake --build --preset release -j $(JOBS)
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

# Debian packages in build/deb/packages, and an archive of the program that runs from any place.
deb:
	@cmake/packages packages.txt build native ranks python
	@cmake --preset release -B build/deb -DCMAKE_INSTALL_PREFIX=/usr -DSALTUS_DEBIAN=ON -DSALTUS_PYTHON=ON -DSALTUS_TESTS=OFF \
	  -Dsite=lib/python3/dist-packages > /dev/null
	@cmake --build build/deb -j $(JOBS)
	@cd build/deb && cpack -G DEB

archive:
	@cmake/packages packages.txt build
	@cmake --preset release -B build/archive -DSALTUS_PORTABLE=ON -DSALTUS_TESTS=OFF > /dev/null
	@cmake --build build/archive -j $(JOBS) --target saltus_cli
	@cd build/archive && cpack -G TGZ

# clang-tidy (.clang-tidy) on the files of src that differ from main.
tidy:
	@cmake/packages packages.txt build edit clang
	@cmake --preset clang -B build/tidy -DSALTUS_UNITY=OFF -DSALTUS_TESTS=OFF > /dev/null
	@git diff --name-only --diff-filter=d main -- 'src/*.cpp' | xargs -r -n1 -P$(JOBS) clang-tidy -p build/tidy --quiet

# The documentation with search, gallery and API: build/site/index.html.
site:
	@python3 scripts/site/build.py . build/site

# What takes minutes: installations from a clean copy, in the group `slow`.
test-slow:
	@cd $(BUILD) && ctest -C Slow -L slow --output-on-failure

bench:
	@cmake/packages packages.txt build native bench
	@cmake --preset release -B build/bench -DSALTUS_BENCH=ON -DSALTUS_TESTS=OFF
	@cmake --build build/bench -j $(JOBS)
	@for program in build/bench/bench/*_bench; do echo "== $$program"; $$program || exit 1; done

# use_tls=0: scanning the storage of threads for leaks crashes now and then where modules have been loaded.
asan:
	@cmake/packages packages.txt build draw ranks test
	@cmake --preset asan
	@cmake --build --preset asan -j $(JOBS)
	@cd build/asan && LSAN_OPTIONS=use_tls=0:print_suppressions=0:suppressions=$(CURDIR)/cmake/leaks.txt ctest --output-on-failure -j $(JOBS)

# The tests that start threads: those of analysis, but for ranks (MPI is not built with the sanitizer).
tsan:
	@cmake/packages packages.txt build ranks test
	@cmake --preset tsan
	@cmake --build --preset tsan -j $(JOBS) --target analysis_tests
	@build/tsan/tests/analysis_tests --gtest_brief=1 --gtest_filter=-Ranks*

# Every target for FUZZ_SECONDS; what is found is kept in build/fuzz/findings.
FUZZ_SECONDS := 60
FUZZ := build/fuzz/tests/fuzz
fuzz:
	@cmake/packages packages.txt build clang test
	@cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS)
	@for target in "read_model corpus ../errors ../reference/cases" "command_line command_line" "past past" \
	  "checkpoint checkpoint"; do set -- $$target; name=$$1; shift; folders=""; \
	  mkdir -p build/fuzz/corpus/$$name build/fuzz/findings; \
	  for folder in "$$@"; do folders="$$folders tests/fuzz/$$folder"; done; \
	  echo "== $$name"; $(FUZZ)/$${name}_fuzz build/fuzz/corpus/$$name $$folders -max_total_time=$(FUZZ_SECONDS) \
	    -timeout=100 -rss_limit_mb=3000 -artifact_prefix=build/fuzz/findings/ -verbosity=0 -print_final_stats=1 || exit 1; \
	done
	@echo "== run"
	@cmake --preset release $(if $(wildcard $(BUILD)/build.ninja),> $(BUILD)/configure.log,-DSALTUS_TESTS=OFF)
	@cmake --build --preset release -j $(JOBS) --target saltus_cli
	@tests/fuzz/run_fuzz.py $(SALTUS) . build/fuzz/findings $(FUZZ_SECONDS)

clean:
	rm -rf build
