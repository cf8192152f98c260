# make run    build, then measure this machine for half a minute
# make test   the tests (as root also those that need real-time rights; for arm64: make lab)
# make help   everything else

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:$(PATH)
ifdef SUDO_USER
  # Under sudo, use the caller's Rust, and give the build output to the caller.
  caller := $(shell getent passwd $(SUDO_USER) | cut -d: -f6)
  export PATH := $(caller)/.cargo/bin:$(PATH)
  export RUSTUP_HOME ?= $(caller)/.rustup
  give_back = @chown -R $(SUDO_UID):$(SUDO_GID) target dist 2>/dev/null || true
endif
# The name of an installed toolchain of the pinned version, e.g. `stable`; empty if the pinned name is installed.
RUSTUP_TOOLCHAIN ?= $(shell PATH='$(PATH)' RUSTUP_HOME='$(RUSTUP_HOME)' tools/setup toolchain)
export RUSTUP_TOOLCHAIN
TARGETS := x86_64-unknown-linux-musl aarch64-unknown-linux-musl
# This linker is part of Rust, so no cross compiler is needed.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER := rust-lld

.PHONY: run build test test-all lint lab bench bench-amp plugin dist fuzz help

run: build
	@target/quick/punctual || [ $$? -ge 2 ]   # the exit status of a verdict is not a failure of make

build:
	@tools/setup build
	@$(CARGO) build --profile quick --quiet
	$(give_back)

test:
	@tools/setup test
	@tools/setup lab || true   # the guests whose programs are missing are skipped and reported
	@tools/test
	$(give_back)

test-all: test
	@tools/setup dist || true   # the stages whose programs are missing are skipped and reported, or fail
	@tools/test slow

lint:
	@tools/setup build
	@tools/lint

lab:
	@tools/setup lab || true
	@$(CARGO) run --quiet -p lab-tests -- $(LAB)
	$(give_back)

bench:
	@tools/setup test
	$(CARGO) build --profile dist --target x86_64-unknown-linux-musl
	$(CARGO) run --release --quiet -p bench -- target/x86_64-unknown-linux-musl/dist/punctual $(BENCH)

# First builds everything for this processor, because the peers do not select instructions at run time. Then measures the
# amplifier as it is shipped.
bench-amp:
	@tools/setup build
	@RUSTFLAGS="-C target-cpu=native" $(CARGO) build --release --quiet -p bench-amp --target-dir target/native
	@$(CARGO) build --release --quiet -p bench-amp
	@target/native/release/bench-amp --check $(BENCH); code=$$?; echo; target/release/bench-amp --ours --quick; exit $$code
	$(give_back)

plugin:
	@tools/setup build
	@tools/plugin $(PRESETS)
	$(give_back)

dist:
	@tools/setup dist
	@mkdir -p dist
	@$(CARGO) build --profile dist $(addprefix --target ,$(TARGETS))
	@for target in $(TARGETS); do cp target/$$target/dist/punctual dist/punctual-$${target%%-*} || exit 1; done
	@tools/check-dist
	@$(MAKE) --no-print-directory -s -C judge
	@cp judge/firmware/build/judge.uf2 dist/punctual-judge.uf2
	@rm -f dist/*.deb dist/*.rpm dist/*.tar.gz
	@tools/package dist x86_64=dist/punctual-x86_64 aarch64=dist/punctual-aarch64
	@tools/check-packages dist
	@$(MAKE) --no-print-directory -s plugin
	@tar -C dist -czf dist/punctual-plugin-$$(uname -m).tar.gz punctual.lv2 punctual.clap
	@[ ! -d dist/aarch64 ] || tar -C dist/aarch64 -czf dist/punctual-plugin-aarch64.tar.gz punctual.lv2 punctual.clap
	$(give_back)

fuzz:
	@tools/fuzz $(SECONDS_EACH)

help:
	@echo 'make run       build, then measure this machine for half a minute'
	@echo 'make test      the tests; as root also those that need real-time rights; for arm64: make lab'
	@echo 'make test-all  the tests, then the slow ones'
	@echo 'make lint      check formatting, lints, dependencies and documentation'
	@echo 'make lab       test real-time kernels in small guests; LAB="--only exact" for some, LAB=--help for more'
	@echo 'make bench     compare punctual with cyclictest: a table of ratios; BENCH="--only udp,stream" for some'
	@echo 'make bench-amp compare the amplifier with its peers: ratios, checked against targets; BENCH=--quick for less'
	@echo 'make plugin    the amplifier as a plugin for LV2 and CLAP hosts, in dist; PRESETS="a.toml b.toml"'
	@echo 'make dist      static binaries for x86-64 and aarch64, their packages, the plugin, and the firmware of the judge'
	@echo 'make fuzz      run every fuzz target for SECONDS_EACH seconds (default 20)'
