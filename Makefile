# `make run` and `make test` need git, make and python3 with venv. They install the rest in .venv:
# `make run` what a runtime needs, all others also what developers need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The engine's allocator is set as in processes of the runtime: caraway_core.settings.ENGINE_VARIABLES.
PYTEST = MIMALLOC_PURGE_DELAY=10 MIMALLOC_PURGE_DECOMMITS=0 MIMALLOC_ABANDONED_PAGE_PURGE=1 MIMALLOC_ARENA_PURGE_MULT=0 $(BIN)/python -m pytest --hypothesis-seed=$(SEED)
WORKERS ?= 4
# Generated inputs are the same in every run, so that a run tells of the change and not of its luck.
# `make test-full` draws others; `SEED=1 make test` does so here.
SEED ?= 12
MANIFEST ?= examples/quickstart
CHAOS ?= kills or pauses or power_cuts or rollouts

# Tests start hundreds of processes; without bytecode each would compile 500 modules, for a second.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run extras console console-if-possible check-console test test-integration test-answers test-console test-cluster test-cluster-answers test-cluster-events test-cluster-pods test-databases test-faults test-management test-networks test-chaos test-differential test-hostile test-npm test-clients test-package test-upgrade test-upgrade-short test-rollouts test-failed test-full check coverage format bench bench-paired dist docs house lock protos clean

setup: $(VENV)/.installed examples/data/.made console-if-possible

$(VENV)/.runs: requirements/run.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --no-compile -r requirements/run.txt
	$(PIP) --no-deps --no-compile --editable .
	touch $@

$(VENV)/.installed: $(VENV)/.runs requirements/dev.txt requirements/kubernetes.txt
	$(PIP) -r requirements/dev.txt
	$(PIP) --no-deps -r requirements/kubernetes.txt
	touch $@

# The page that a runtime serves at `/`. Without Node, pip installs it; without both, the runtime serves a
# page that says so. `make console` fails then, `make run` does not.
console: $(VENV)/.runs
	$(BIN)/python console/build.py

console-if-possible: $(VENV)/.runs
	-@$(BIN)/python console/build.py

examples/data/.made: $(VENV)/.runs examples/make_data.py
	$(BIN)/python examples/make_data.py
	touch $@

run: $(VENV)/.runs examples/data/.made console-if-possible
	$(BIN)/caraway run $(MANIFEST)

# Adds extras to what `make run` installed, with the same pins: `make extras EXTRAS=search,cluster`.
EXTRAS ?= search,cluster
extras: $(VENV)/.runs
	$(PIP) --constraint requirements/dev.txt --editable '.[$(EXTRAS)]'

# Tests sync many small files, also those of state stores. Where the system has much room for files in
# memory, they write there. Only what failed tests wrote is kept.
SHM_MB = $(shell df --output=avail --block-size=1M /dev/shm 2>/dev/null | tail -1)
IN_MEMORY = $(shell test "$(SHM_MB)" -ge 6000 2>/dev/null && echo /dev/shm)

# Twice as many processes as there are cores, because many tests wait for other processes and would
# leave a third of two cores idle. The tests of one module stay in one. Modules come in the order of
# tests/kit/longest_first.py, since those with the most tests are not the longest.
GATE = PYTEST_DEBUG_TEMPROOT=$(IN_MEMORY) $(PYTEST) -o tmp_path_retention_policy=failed -o timeout=300 -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: setup
	$(GATE) -m "not full and not answers" $(INTEGRATION:%=--ignore=%)

# Runtimes, engines, databases and programs of others, which are started as processes; what is tested through
# a whole service; and single modules of minutes. What is not named here is tested by `make test`.
INTEGRATION := tests/charts tests/client tests/conformance tests/e2e tests/executor/engines tests/gateway/api \
	tests/gateway/flight tests/hostile tests/management/api tests/operator/reconciling tests/plugins/embeddings \
	tests/plugins/sources tests/plugins/stores \
	tests/cluster/store/test_command.py \
	tests/core/test_extras.py \
	tests/executor/resources/test_freeing.py \
	tests/scheduler/jobs/test_processes.py
test-integration: setup
	$(GATE) -m "not full and not answers" $(INTEGRATION)

# Thousands of statements whose answers are compared with another runner, or with DuckDB. `make test` runs a
# share of the corpus; together both run all that is not `full`.
ANSWERS := tests/differential tests/engine/known_faults/test_name_shapes.py
test-answers: setup
	$(GATE) -m "answers and not full" $(ANSWERS)

# The tests that failed last, one after the other.
test-failed: setup
	$(PYTEST) -o timeout=1800 --last-failed --last-failed-no-failures none

test-cluster: test-cluster-answers test-cluster-events test-cluster-pods

test-cluster-answers: setup
	$(PYTEST) -o timeout=400 -m full -k two-real tests/differential/test_corpus.py tests/differential/test_tpch.py

test-cluster-events: setup
	$(PYTEST) -o timeout=500 -m full tests/e2e/test_cluster_jobs.py tests/e2e/test_cluster_acceleration.py tests/e2e/test_cluster_changes.py tests/e2e/test_cluster_drain.py tests/e2e/test_cluster_lakes.py tests/e2e/test_cluster_lost_writes.py tests/e2e/test_cluster_promises.py tests/e2e/test_long_statements.py

# How soon pods end is judged by test-full, on a machine that does nothing else. It also waits two minutes
# for a liveness probe.
test-cluster-pods: setup
	$(PYTEST) -o timeout=600 -m full -k "not within_the_grace and not caraway-head" tests/charts/test_processes.py

# The management service over PostgreSQL; `make test` has it over SQLite, and only its store over both.
test-databases: setup
	PYTEST_DEBUG_TEMPROOT=$(IN_MEMORY) $(PYTEST) -o tmp_path_retention_policy=failed -o timeout=300 -m full -k "postgresql and not 1000" -n $(WORKERS) --dist loadfile tests/management

# The management service as people use it: the commands, the clients, real runtimes and a real cluster, mail and
# webhooks, and a service that is killed, over both databases. Monitors take five minutes, and no processor.
test-management: setup
	$(PYTEST) -o timeout=900 -m full -n 2 --dist loadfile tests/e2e/test_management.py tests/e2e/test_management_monitors.py

test-faults: setup
	$(PYTEST) -o timeout=500 -m full tests/e2e/test_cluster.py tests/e2e/test_cluster_faults.py tests/e2e/test_head_faults.py tests/bench/test_shuffling.py

# Hosts in network namespaces: cut off, slow, with losses and with clocks that differ. CARAWAY_CHAOS_S is
# the length of each load.
test-networks: setup
	$(PYTEST) -s -o timeout=1800 -m full tests/e2e/test_cut_hosts.py tests/e2e/test_network_chaos.py

# CARAWAY_CHAOS_S is the length of each run, CARAWAY_CHAOS_SEED what happens in it, CHAOS which runs
# there are; `mixed` is a short one of kills and pauses.
test-chaos: setup
	$(PYTEST) -s -o timeout=1800 -m full -k "$(CHAOS)" tests/e2e/test_run_chaos.py tests/e2e/test_cluster_chaos.py

# All fleets in process, over the same statements every time; of `other` ones, those that DuckDB
# judges.
test-differential: setup
	$(PYTEST) -o timeout=400 -n 2 --dist loadfile -m full -k "not real and (judge or not other_)" tests/differential

# HOSTILE chooses among them. With MEASURES=1 they also judge times and memory, as test-full does,
# which needs a machine that does nothing else.
HOSTILE ?= hostile
MEASURES ?= 0
test-hostile: setup
	CARAWAY_MEASURES=$(MEASURES) $(PYTEST) -o timeout=400 -m full -k "$(HOSTILE)" tests/hostile

# The wheel in empty environments, and the README from an empty directory. LATEST=1 takes the versions
# of today in place of those of the lock files. Needs the network.
LATEST ?= 0
PACKAGE ?= package
test-package: setup
	$(PIP) --constraint requirements/dev.txt -r requirements/package.txt
	CARAWAY_LATEST=$(LATEST) $(PYTEST) -o timeout=600 -m full -n 2 -k "$(PACKAGE)" tests/package

# Libraries of others, in environments of their own under .venv/clients. What a toolchain is missing for
# is skipped, and said. Needs the network once.
CLIENTS := $(VENV)/clients
test-clients: setup
	$(PIP) --constraint requirements/dev.txt -r requirements/package.txt
	$(BIN)/uv venv --quiet --clear $(CLIENTS)/python
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/python -r requirements/clients.txt
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/python --no-deps --editable .
	$(BIN)/uv venv --quiet --clear $(CLIENTS)/iceberg
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/iceberg -r requirements/iceberg.txt
	$(BIN)/uv venv --quiet --clear $(CLIENTS)/engines
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/engines -r requirements/engines.txt
	$(BIN)/uv venv --quiet --clear $(CLIENTS)/fakesnow
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/fakesnow -r requirements/fakesnow.txt
	! command -v mvn || mvn --quiet --batch-mode --file tests/e2e/clients/spark/pom.xml \
		dependency:copy-dependencies -DoutputDirectory=$(abspath $(CLIENTS))/spark
	! command -v npm || npm install --silent --no-audit --no-fund --prefix $(CLIENTS)/node ai@6.0.326 @ai-sdk/openai-compatible@2.0.92
	! command -v mvn || mvn --quiet --batch-mode --file tests/e2e/clients/java/pom.xml \
		dependency:copy-dependencies -DoutputDirectory=$(abspath $(CLIENTS))/java
	! command -v mvn || mvn --quiet --batch-mode --file tests/e2e/clients/opensearch/pom.xml \
		dependency:copy-dependencies -DoutputDirectory=$(abspath $(CLIENTS))/opensearch
	! command -v mvn || mvn --quiet --batch-mode --file tests/e2e/clients/elasticsearch/pom.xml \
		dependency:copy-dependencies -DoutputDirectory=$(abspath $(CLIENTS))/elasticsearch
	! command -v mvn || mvn --quiet --batch-mode --file tests/e2e/clients/mongodb/pom.xml \
		dependency:copy-dependencies -DoutputDirectory=$(abspath $(CLIENTS))/mongodb
	for version in hive3 hive4; do ! command -v mvn || mvn --quiet --batch-mode \
		--file tests/e2e/clients/$$version/pom.xml dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(abspath $(CLIENTS))/$$version; done
	! command -v cargo || cargo build --quiet --manifest-path tests/e2e/clients/rust/Cargo.toml --target-dir $(CLIENTS)/rust
	CARAWAY_CLIENTS=$(CLIENTS) $(PYTEST) -o timeout=300 -m full tests/e2e/test_llm_clients_guide.py tests/e2e/test_jdbc.py tests/e2e/test_rust_client.py tests/e2e/test_iceberg_clients.py tests/e2e/test_iceberg_access.py tests/e2e/test_iceberg_engines.py tests/e2e/test_cluster_catalog.py
	! command -v go || go build -C tests/e2e/clients/ferretdb -o $(abspath $(CLIENTS))/ferretdb/ferretdb .
	CARAWAY_CLIENTS=$(CLIENTS) $(PYTEST) -o timeout=300 tests/plugins/sources/snowflake tests/plugins/sources/mongodb tests/plugins/sources/opensearch tests/plugins/sources/iceberg tests/plugins/changes/mongodb tests/conformance/test_sources.py tests/conformance/test_catalog_sources.py tests/conformance/test_change_sources.py -k "snowflake or mongodb or search or hive or collection"

# Needs node and npm, and the network once.
NPM := $(VENV)/npm
test-npm: setup
	npm install --silent --no-audit --no-fund --prefix $(NPM) @spiceai/spice@3.2.0 @copilotkit/aimock@1.43.0
	CARAWAY_NPM=$(NPM) $(PYTEST) -o timeout=200 -m full tests/e2e/test_npm_client.py tests/e2e/test_aimock.py

# A cluster of the release before becomes one of this release under load, process by process, and back.
# EARLIER is a tag or a commit, by default that of tests/kit/releases.py. Needs its commit in this clone.
EARLIER ?=
test-upgrade: setup
	CARAWAY_EARLIER=$(EARLIER) $(PYTEST) -s -rs -o timeout=2400 -m full tests/e2e/test_upgrade.py

# The first part of it, the data of each release read by the other, and two releases of the management service.
test-upgrade-short: setup
	CARAWAY_UPGRADE=short $(PYTEST) -s -rs -o timeout=600 -m full tests/e2e/test_release_data.py tests/e2e/test_management_releases.py tests/e2e/test_upgrade.py -k "not downgraded"

# The console in Debian's Chromium, over real runtimes. Where there is no Chromium, its tests are skipped.
test-console: setup
	$(PIP) -r requirements/browser.txt
	-$(BIN)/python console/build.py --check
	$(PYTEST) -rs -o timeout=300 -m full tests/e2e/test_console*.py tests/e2e/test_management_console.py tests/e2e/test_management_people.py

# Manifests, keys and certificates reach runtimes under load, and no request fails.
test-rollouts: setup
	$(PYTEST) -s -o timeout=600 -m full tests/e2e/test_rollouts.py

test-full: SEED = $(shell date +%s)
test-full: setup
	CARAWAY_MEASURES=1 $(PYTEST) -o timeout=400

check: setup
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.prose

# The branches of the pure modules (tool.coverage in pyproject.toml) that their own tests reach; 90 % at least.
PURE_TESTS := tests/core/manifest tests/core/sqltext $(wildcard tests/core/test_*.py) \
	$(addprefix tests/core/,concurrency errors json_texts process/test_durations.py security statements tables) tests/engine/routing tests/engine/stages \
	tests/management/domain $(filter-out tests/operator/test_operating.py,$(wildcard tests/operator/test_*.py)) \
	tests/operator/manifests tests/operator/policy tests/operator/reconciling tests/operator/scaling tests/operator/states $(wildcard tests/acceleration/refresh/test_*.py) \
	tests/scheduler/jobs/test_queue.py tests/scheduler/jobs/test_states.py tests/search tests/ai/tool_loop tests/ai/text_to_sql
coverage: setup
	MIMALLOC_PURGE_DELAY=10 $(BIN)/python -m coverage run -m pytest -q --hypothesis-seed=$(SEED) -o timeout=600 -m "not full" $(PURE_TESTS)
	$(BIN)/python -m coverage report

# The types and the tests of the console. Needs npm's packages, and the network once.
check-console: setup
	$(BIN)/python console/build.py --check

format: setup
	$(BIN)/ruff check --no-cache --fix .
	$(BIN)/ruff format --no-cache .

bench: setup
	$(PIP) -r requirements/bench.txt
	$(BIN)/python -m bench

# Compares this checkout with another commit, which gets a checkout and an environment of its own.
BASE ?= origin/main
bench-paired: setup
	$(PIP) -r requirements/bench.txt
	rm -rf bench/data/base && git worktree prune
	git worktree add --quiet --detach bench/data/base $(BASE)
	$(MAKE) -C bench/data/base setup
	$(BIN)/python -m bench.paired bench/data/base

# Generates the messages of Arrow Flight from their published interface.
PROTOCOL := gateway/caraway_gateway/flight/sql/protocol
protos: setup
	$(BIN)/python -m grpc_tools.protoc -I $(PROTOCOL) --python_out=$(PROTOCOL) Flight.proto FlightSql.proto

# The files of a release in dist/: wheel, source, chart, context of the image, bill of materials, checksums.
dist: setup requirements/package.txt
	$(PIP) --constraint requirements/dev.txt -r requirements/package.txt
	$(BIN)/python console/build.py
	$(BIN)/python -m tools.dist

# The site of the documentation in site/, with search and a reference of the Python client. Its packages have an
# environment of their own; once they are there, no network is needed. Serve it with `python -m http.server -d site`.
docs: $(VENV)/docs/.installed
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --quiet --strict
	$(BIN)/python -m tools.site site

$(VENV)/docs/.installed: requirements/docs.txt requirements/package.txt $(VENV)/.runs
	$(PIP) --constraint requirements/dev.txt -r requirements/package.txt
	$(BIN)/uv venv --quiet --clear $(VENV)/docs
	$(BIN)/uv pip install --quiet --python $(VENV)/docs -r requirements/docs.txt
	touch $@

# The table of the architecture review, counted today.
house: setup
	@$(BIN)/python -m tools.house

# Pins every requirement; the files name no index.
LOCK = $(BIN)/uv pip compile --quiet --no-emit-index-url --no-header --universal --python-version 3.11
lock: $(VENV)/.runs requirements/package.txt
	$(PIP) -r requirements/package.txt
	$(LOCK) --extra dev pyproject.toml -o requirements/dev.txt
	$(LOCK) --extra runtime -c requirements/dev.txt pyproject.toml -o requirements/run.txt
	$(LOCK) --extra bench -c requirements/dev.txt pyproject.toml -o requirements/bench.txt
	$(LOCK) requirements/rivals.in -o requirements/rivals.txt
	$(LOCK) --extra image -c requirements/dev.txt pyproject.toml -o requirements/image.txt
	$(LOCK) --extra operator -c requirements/dev.txt pyproject.toml -o requirements/operator.txt
	$(LOCK) --no-deps requirements/kubernetes.in -o requirements/kubernetes.txt
	$(LOCK) requirements/clients.in -o requirements/clients.txt
	$(LOCK) requirements/iceberg.in -o requirements/iceberg.txt
	$(LOCK) requirements/engines.in -o requirements/engines.txt
	$(LOCK) requirements/fakesnow.in -o requirements/fakesnow.txt
	$(LOCK) requirements/docs.in -o requirements/docs.txt
	$(LOCK) -c requirements/dev.txt requirements/package.in -o requirements/package.txt

clean:
	rm -rf $(VENV) examples/data bench/data .caraway console/node_modules serving/caraway_serving/console/files
