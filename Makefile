# make demo: see it run. make test: everything that can be checked here. Both need root (the lab's namespaces).
PYTHON ?= python3
BIN := .venv/bin
PACKAGES := mininet iproute2 ethtool iputils-ping bridge-utils iperf3 tcpdump python3-venv
TEST_PACKAGES := openvswitch-switch

.PHONY: demo test ddp check setup proto p4 nccl lock clean

demo: setup
	$(BIN)/leveller demo --scenario pair --policy fair,static,leveller

test: setup check .venv-p4runtime-shell/installed
	@dpkg -s $(TEST_PACKAGES) >/dev/null 2>&1 || { \
	  echo "installing Debian packages: $(TEST_PACKAGES)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $(TEST_PACKAGES); }
	$(BIN)/pytest

# Real PyTorch jobs in the lab: some 200 MB to install, and eight minutes.
ddp: setup
	$(BIN)/pip install -qq --disable-pip-version-check torch==2.13.0
	$(BIN)/pytest -rP mininet-tests/test_ddp.py tests/topo/jobs/test_ddp.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: .venv/installed

.venv/installed: requirements.txt pyproject.toml Makefile
	@dpkg -s $(PACKAGES) >/dev/null 2>&1 || { \
	  echo "installing Debian packages: $(PACKAGES)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $(PACKAGES); }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -qq --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# p4runtime-shell pins libraries that clash with ours; a test drives the softswitch with it.
.venv-p4runtime-shell/installed: controlplane/p4runtime-shell.txt
	$(PYTHON) -m venv .venv-p4runtime-shell
	.venv-p4runtime-shell/bin/pip install -qq --disable-pip-version-check --require-hashes -r $<
	@touch $@

# The generated modules of the agents' protocol; tests/proto/test_agent_proto.py fails when they are stale.
proto: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I proto --python_out=proto --mypy_out=quiet:proto \
	  --grpc_python_out=proto --mypy_grpc_out=quiet:proto proto/leveller_proto/agent.proto

# What p4c makes of p4src; tests/p4src/test_build_program.py fails when it is stale.
p4: setup
	$(BIN)/python -m p4src.build_program

# The NCCL profiler plugin, for hosts whose jobs load it (docs/agent.md).
nccl:
	mkdir -p build
	$(CC) -std=c11 -O2 -Wall -Wextra -fPIC -shared -pthread -o build/libnccl-profiler-leveller.so hostagent/nccl/plugin.c

# Pin every dependency, with hashes.
lock: setup
	$(BIN)/pip-compile --quiet --extra dev --generate-hashes --strip-extras --allow-unsafe \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements.txt pyproject.toml

clean:
	rm -rf .venv .venv-p4runtime-shell build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
