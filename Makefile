# make run    build, then look at this machine for half a minute
# make test   the tests (as root: those that need real-time rights too; for arm64: make lab)
# make help   the rest

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:$(PATH)
ifdef SUDO_USER
  # Under sudo the caller's Rust serves, and what was built stays the caller's.
  caller := $(shell getent passwd $(SUDO_USER) | cut -d: -f6)
  export PATH := $(caller)/.cargo/bin:$(PATH)
  export RUSTUP_HOME ?= $(caller)/.rustup
  give_back = @chown -R $(SUDO_UID):$(SUDO_GID) target dist 2>/dev/null || true
endif
TARGETS := x86_64-unknown-linux-musl aarch64-unknown-linux-musl
# rustc brings this linker along, so that no cross compiler is needed.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER := rust-lld

.PHONY: run build test test-all lint lab bench bench-amp dist fuzz help

run: build
	@target/release/punctual || [ $$? -ge 2 ]   # a verdict is no failure of make

build:
	@tools/setup build
	@$(CARGO) build --release --quiet
	$(give_back)

test:
	@tools/setup test
	@tools/setup lab || true   # what is missing makes tests of the lab be skipped, loudly
	@tools/test
	$(give_back)

test-all: test
	@tools/test slow

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --document-private-items --quiet

lab:
	@tools/setup lab || true
	@$(CARGO) run --quiet -p lab-tests -- $(LAB)
	$(give_back)

bench:
	@tools/setup test
	$(CARGO) build --profile dist --target x86_64-unknown-linux-musl
	$(CARGO) run --release --quiet -p bench -- target/x86_64-unknown-linux-musl/dist/punctual $(BENCH)

# Peers choose no instructions when they run, so all is built for this processor; then the amplifier alone as it is shipped.
bench-amp:
	@tools/setup build
	@RUSTFLAGS="-C target-cpu=native" $(CARGO) build --release --quiet -p bench-amp --target-dir target/native
	@$(CARGO) build --release --quiet -p bench-amp
	@target/native/release/bench-amp --check $(BENCH); code=$$?; echo; target/release/bench-amp --ours --quick; exit $$code
	$(give_back)

dist:
	@tools/setup dist
	@mkdir -p dist
	@$(CARGO) build --profile dist $(addprefix --target ,$(TARGETS))
	@for target in $(TARGETS); do cp target/$$target/dist/punctual dist/punctual-$${target%%-*} || exit 1; done
	@tools/check-dist

fuzz:
	@tools/fuzz $(SECONDS_EACH)

help:
	@echo 'make run       build, then look at this machine for half a minute'
	@echo 'make test      the tests; as root those that need real-time rights too; for arm64: make lab'
	@echo 'make test-all  the slow ones as well'
	@echo 'make lint      formatting, lints, and the links of the documentation'
	@echo 'make lab       real-time kernels in small guests; LAB="--only exact" for some, LAB=--help for more'
	@echo 'make bench     punctual beside cyclictest, alternating: a table of ratios; BENCH="--only udp,stream" for some'
	@echo 'make bench-amp the amplifier beside its peers, alternating: a table of ratios, and a gate; BENCH=--quick for less'
	@echo 'make dist      static binaries for x86-64 and aarch64 in dist/'
	@echo 'make fuzz      every fuzz target for SECONDS_EACH seconds (default 20)'
