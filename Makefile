# SPDX-License-Identifier: Apache-2.0
# Each target works as the first command on a fresh Debian or Ubuntu machine.
MAKEFLAGS += --no-print-directory
.PHONY: help build run test test-long test-packages sanitize bundle bench docs report format clean setup

help:
	@echo "make run      build, then forward frames between software NICs for three seconds and verify every byte"
	@echo "make test     build, then run the checks and tests that guard a change"
	@echo "make test-long  the tests that need time: many seeds, emulated machines, Ray, soak"
	@echo "make test-packages  make the wheel and the Debian packages, and test them where nothing else is installed"
	@echo "make sanitize the unit tests under AddressSanitizer with UBSan and under ThreadSanitizer"
	@echo "make build    build; the program is build/warpline"
	@echo "make bundle   build/bundle/: program, tests and benchmarks that need nothing but glibc where they run"
	@echo "make bench    the benchmarks that this machine can run; results under build/bench/"
	@echo "make report   draw the kept results as one page, docs/report.html"
	@echo "make docs     the reference of the libraries, build/docs/index.html; needs doxygen"
	@echo "make format   lay out the C++ sources"
	@echo "make clean    remove build/"

setup:
	@setup/install

# The program alone; its tests and benchmarks are built when they are run.
build: setup
	@setup/build release warpline dpdk_drivers
	@ln -sfn release/apps/warpline/warpline build/warpline
	@ln -sfn release/drivers build/drivers

run: build
	@setup/run

test: setup
	@setup/test

test-long: setup
	@setup/test --long

test-packages: setup
	@setup/test --packages

sanitize: setup
	@setup/sanitize

bundle: setup
	@setup/bundle

bench: setup
	@setup/bench

report: setup
	@setup/report

docs:
	@setup/docs

format: setup
	@setup/format

clean:
	rm -rf build
