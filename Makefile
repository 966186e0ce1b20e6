# SPDX-License-Identifier: Apache-2.0
# Each target works as the first command on a fresh Debian or Ubuntu machine.
MAKEFLAGS += --no-print-directory
.PHONY: help build run test bench format clean setup

help:
	@echo "make run      build, then forward two million frames on software NICs and verify every byte of them"
	@echo "make test     build, then run all checks and tests"
	@echo "make build    build; the program is build/warpline"
	@echo "make bench    the benchmarks that this machine can run; results under build/bench/"
	@echo "make format   lay out the C++ sources"
	@echo "make clean    remove build/"

setup:
	@setup/install

build: setup
	@setup/build release
	@ln -sfn release/apps/warpline/warpline build/warpline

# The live table goes to stderr, the summary to build/run.json.
run: build
	@build/warpline forward --loopback --packets 2000000 --json >build/run.json
	@echo "run: every frame verified; the summary is in build/run.json" >&2

test: setup
	@setup/test

bench: build
	@setup/bench

format: setup
	@setup/format

clean:
	rm -rf build
