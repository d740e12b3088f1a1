# Everything that is done with this project from a shell. `make help` lists it.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?=
VENV := .venv
TASKS := .venv-tasks
TASK_LOCK := deploy/images/task/requirements.txt
WORKBENCH := .venv-workbench
WORKBENCH_LOCK := deploy/images/workbench/requirements.txt
SPARK := .venv-spark
SPARK_LOCK := deploy/spark/requirements.txt
SPARK_JAVA_LOCK := deploy/spark/java/requirements.txt
BIN := $(VENV)/bin
export PYTHONPATH := $(CURDIR)/platform:$(CURDIR)
PORT ?= 8080
ENGINE ?= local
STORE ?= folder

.PHONY: help setup assets up demo minio ignite ignite-down spark hosts hosts-down stop-jobs test test-all test-pythons fuzz check bench screenshots lint types contracts audit lock clean cluster cluster-down cluster-status test-cluster test-registry bench-cluster figures

help: ## list what can be done
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# All at the same time: what tasks import is as large as all of the rest.
setup: ## install the portal into .venv, what tasks import into .venv-tasks, notebooks into .venv-workbench; build the assets
	@$(MAKE) --silent --no-print-directory -j3 $(VENV)/.assets $(TASKS)/.installed $(WORKBENCH)/.installed

$(VENV)/.installed: requirements.txt deploy/setup/install.sh
	@deploy/setup/install.sh "$(VENV)" requirements.txt $(PYTHON)
	@touch $@

$(TASKS)/.installed: $(TASK_LOCK) deploy/setup/install.sh
	@deploy/setup/install.sh "$(TASKS)" $(TASK_LOCK) $(PYTHON)
	@touch $@

# On top of what tasks import, which is not installed twice. All but notebooks works without it.
$(WORKBENCH)/.installed: $(WORKBENCH_LOCK) deploy/setup/install.sh
	@{ deploy/setup/install.sh "$(WORKBENCH)" $(WORKBENCH_LOCK) $(PYTHON) && cd $(WORKBENCH)/lib/python3.* && \
		echo "../../../../$(TASKS)/lib/$$(basename "$$PWD")/site-packages" > site-packages/beneath.pth && cd "$(CURDIR)" && touch $@; } || \
		{ [ -e $@ ] || rm -rf "$(WORKBENCH)"; echo "$(WORKBENCH) could not be installed: see above. All but JupyterLab works." >&2; }

$(VENV)/.assets: $(VENV)/.installed $(shell find frontend -type f -not -path '*/node_modules/*' -not -path '*/built/*' 2>/dev/null) deploy/setup/assets.sh
	@deploy/setup/assets.sh "$(VENV)"
	@touch $@

assets: $(VENV)/.assets ## build style sheets and scripts

up: setup ## run the portal on this machine until Ctrl-C (PORT=8080, and the next for the workbench; STORE=minio; ENGINE=kubernetes: with the kubeconfig's cluster)
	@exec $(BIN)/python -m portal.up --port $(PORT) $(if $(WORKBENCH_PORT),--workbench-port $(WORKBENCH_PORT)) --store $(STORE) $(if $(filter kubernetes,$(ENGINE))$(filter 1,$(KUBERNETES)),--engine kubernetes)

# With a cluster of one's own none is brought up.
OWN_CLUSTER := $(YARDMASTER_KUBECONFIG)
demo: setup $(if $(filter kubernetes,$(ENGINE)),$(if $(OWN_CLUSTER),,cluster)) $(if $(filter hosts,$(ENGINE)),$(if $(YARDMASTER_HOSTS),,hosts)) ## train a real model through the portal (EXIT=1: stop afterwards; EXAMPLE=reviews or all; STORE=minio; ENGINE=kubernetes: in pods; ENGINE=hosts: on machines)
	@exec $(BIN)/python -m portal.demo --port $(PORT) --engine $(ENGINE) --store $(STORE) $(if $(EXAMPLE),--example $(EXAMPLE)) $(if $(EXIT),--exit)

minio: setup ## run MinIO on this machine until Ctrl-C, and say how a portal uses it
	@exec $(BIN)/python -m portal.minio

hosts: setup ## bring up four machines that are reached by SSH, in network namespaces of this one (root, openssh-server)
	@$(BIN)/python -m portal.machines up

hosts-down: ## end them
	@$(BIN)/python -m portal.machines down

# PORT without a value of its own is the portal's.
IGNITE_FOLDER = "$(or $(FOLDER),$${XDG_CACHE_HOME:-$$HOME/.cache}/yardmaster/ignite-run)"

ignite: ## run Apache Ignite on this machine until Ctrl-C, and say how to use it (PORT=10800; NODES=1; SECURE=1: with TLS and a password; FOLDER: of its files)
	@IGNITE_PORT=$(if $(filter file,$(origin PORT)),10800,$(PORT)) exec deploy/ignite/ignite run $(IGNITE_FOLDER) $(or $(NODES),1) $(if $(SECURE),secure)

ignite-down: ## end it, wherever it was started (FOLDER: the same as there)
	@exec deploy/ignite/ignite down $(IGNITE_FOLDER)

$(SPARK)/.installed: $(SPARK_LOCK) deploy/setup/install.sh
	@deploy/setup/install.sh "$(SPARK)" $(SPARK_LOCK) $(PYTHON)
	@touch $@

spark: setup $(SPARK)/.installed ## install Spark and TensorFlowOnSpark into .venv-spark, for jobs with the strategy spark (Java 17 or later)
	@$(BIN)/python -m portal.spark

stop-jobs: setup ## end every job that runs on this machine
	@$(BIN)/python manage.py stop_jobs

test: setup ## run the tests that this machine can run; says which it cannot, and why
	@$(BIN)/python -m tests.run

test-all: setup ## the same, with those that show the same on more input, or for longer
	@$(BIN)/python -m tests.run --all

test-pythons: ## run the tests that need Python alone on the other Pythons that are supported
	@.ci/pythons

fuzz: setup ## send 10,000 requests made from the API's schema to a portal with one of everything (DATABASE=postgres; ONLY=jobs; EXAMPLES=36)
	@$(BIN)/python -m tests.fuzz $(if $(filter postgres,$(DATABASE)),--postgres) $(if $(EXAMPLES),--examples $(EXAMPLES)) $(ONLY)

cluster: ## bring up a real Kubernetes on this machine, with the project's images (Debian, root)
	@deploy/devcluster/devcluster up

cluster-down: ## end it, and leave nothing but its cache
	@deploy/devcluster/devcluster down

cluster-status: ## say what of it runs
	@deploy/devcluster/devcluster status

test-cluster: setup $(if $(KUBECONFIG),,cluster test-registry) ## run the tests that need a cluster, on KUBECONFIG or else on that of `make cluster`
	@status=0; $(BIN)/python -m pytest -m "cluster and not alone $(if $(LONG),,and not long)" -p tests.timing -p tests.scheduling -n 2 tests/cluster || status=$$?; \
		$(BIN)/python -m pytest -m "cluster and alone $(if $(LONG),,and not long)" tests/cluster || status=$$?; exit $$status

# The checks need a secret, not the portal's.
check: export YARDMASTER_SECRET_KEY := only-for-checks-0123456789-0123456789
check: setup lint types contracts ## lint, types, import contracts, schema, migrations
	@$(BIN)/python manage.py check --fail-level WARNING
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/python manage.py spectacular --api-version 1 --validate --fail-on-warn --file /dev/null

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: export YARDMASTER_SECRET_KEY := only-for-checks-0123456789-0123456789
types: setup
	@$(BIN)/mypy platform apps celery_worker manage.py

contracts: setup
	@$(BIN)/lint-imports

# Before the tests: none of them waits as long as the first build takes.
test-registry:
	@deploy/registry/build >/dev/null

bench: setup ## measure speed and memory against the goals; writes bench-results/ (ONLY="start logs")
	@$(BIN)/python -m tests.bench $(ONLY)

bench-cluster: setup ## measure jobs in pods, on KUBECONFIG or else on that of `make cluster` (ONLY="writes submit")
	@$(BIN)/python -m tests.bench.cluster $(ONLY)

screenshots: setup ## take a picture of every page, light and dark, wide and narrow (FOLDER=screenshots)
	@$(BIN)/python -m tests.browser.screenshots $(or $(FOLDER),screenshots) $(PAGES)

figures: setup ## print the figures of the project's structure against the goals (VERBOSE=1: with the modules)
	@$(BIN)/python -m tests.figures $(if $(VERBOSE),--verbose)

audit: setup ## ask the package indexes whether anything that is locked has a known vulnerability
	@PATH="$$PATH:$(CURDIR)/$(BIN)" $(BIN)/python deploy/setup/audit.py

# Each keeps to the versions of those before it where both have a package.
lock: $(VENV)/.installed ## compile the groups of pyproject.toml into the six lock files
	@$(BIN)/uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group portal --group dev -o requirements.txt --custom-compile-command "make lock"
	@$(BIN)/uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group tasks -c requirements.txt -o $(TASK_LOCK) --custom-compile-command "make lock"
	@$(BIN)/uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group workbench -c requirements.txt -c $(TASK_LOCK) -o $(WORKBENCH_LOCK) --custom-compile-command "make lock" \
		$$(sed -n 's/^\([a-z0-9][a-z0-9.-]*\)==.*/--no-emit-package \1/p' $(TASK_LOCK))
	@$(BIN)/uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group spark --no-deps -o $(SPARK_LOCK) --custom-compile-command "make lock"
	@$(BIN)/uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group spark-java --no-deps -o $(SPARK_JAVA_LOCK) --custom-compile-command "make lock"
	@$(BIN)/uv pip compile pyproject.toml -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group reviews --no-deps -o examples/reviews/fetch-requirements.txt --custom-compile-command "make lock"

clean: ## remove what was built (not the portal's home)
	@rm -rf $(VENV) $(TASKS) $(WORKBENCH) $(SPARK) .static frontend/node_modules frontend/static/built bench-results
