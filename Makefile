# Everything sets itself up: `make demo` and `make test` work on a clean clone with Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test test-long test-engines test-browser test-cluster pictures lint bench fuzz papers clean

demo: .venv/core
	$(BIN)/fliprank demo

test: .venv/test .venv/lucene .venv/node
	$(BIN)/pytest -n 2 --dist loadfile -m "not long"

# What takes longer: whole journeys in terminals, kills, damaged inputs, parts of papers, misbehaving clusters.
test-long: .venv/test .venv/lucene .venv/node
	$(BIN)/pytest -n 2 --dist loadfile -m long

# Against the engines and frameworks themselves, some hundred megabytes of them.
test-engines: .venv/test .venv/engines .venv/lucene .venv/lucene9 .venv/postgresql
	$(BIN)/pytest tests/engines

# Reports in a real browser: Chromium and its driver from Debian, axe-core from npm.
test-browser: .venv/test .venv/browser .venv/axe
	$(BIN)/pytest tests/browser

# The screenshots of docs/report.md and README.md.
pictures: .venv/test .venv/browser
	$(BIN)/python tests/browser/take_pictures.py

# Fits on clusters of processes, some of which are killed.
test-cluster: .venv/test
	$(BIN)/pytest tests/distributed

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every reader with N inputs that nobody meant to write; failures go to build/fuzz. ONLY names readers, SEED other inputs.
N ?= 20000
SEED ?= 0
fuzz: .venv/test
	$(BIN)/python tests/fuzz/run_fuzz.py --inputs $(N) --seed $(SEED) $(if $(ONLY),--only $(ONLY))

bench: .venv/bench
	$(BIN)/python bench/run.py

# Every table and figure of the papers, and their pages; goes on where it was ended. DATA has a folder per data set;
# with MINUTES, parts that would take longer are left out.
DATA ?= ../shared/data
papers: .venv/papers
	$(BIN)/fliprank reproduce all --out build/papers --data-folder $(DATA) \
		$(if $(MINUTES),--at-most $(MINUTES)) --pages docs/papers

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/core: INSTALL = -e .
.venv/test: INSTALL = -e '.[test]'
.venv/engines: INSTALL = -e '.[engines]'
.venv/selenium: INSTALL = -e '.[browser]'
.venv/lint: INSTALL = -e '.[lint]'
.venv/papers: INSTALL = -e '.[report,gbm]'
.venv/bench: INSTALL = -e '.[test,peers,torch]'
.venv/core .venv/test .venv/engines .venv/selenium .venv/lint .venv/bench .venv/papers: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check $(INSTALL)
	@touch $@

# Debian's python3 comes without ensurepip: where venv fails for want of it, install it.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fliprank needs Python 3.11 or newer"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; $(SUDO) apt-get update -qq && \
		$(SUDO) apt-get install -y -qq python3-venv && $(PYTHON) -m venv .venv; }

# Lucene, which some tests compare with: Debian's package, unpacked but not installed.
LUCENE := apt-get download -qq liblucene8-java
.venv/lucene: | $(BIN)/python
	@mkdir -p $@.new && cd $@.new && { { $(LUCENE) || { $(SUDO) apt-get update -qq && $(LUCENE); }; } && \
		dpkg -x liblucene8-java_*.deb unpacked && mv unpacked ../lucene; } >/dev/null 2>&1 || \
		echo "No Lucene: apt-get could not download liblucene8-java; the tests that compare with it will be skipped"
	@rm -rf $@.new

# Lucene 9: the jar that comes with pyserini, of which nothing else is used.
.venv/lucene9: | $(BIN)/python
	@rm -rf $@.new && $(BIN)/pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--dest $@.new pyserini==0.40.0
	@cd $@.new && ../bin/python -m zipfile -e pyserini-*.whl unpacked && mv unpacked/pyserini/resources/jars ../lucene9
	@rm -rf $@.new

# Search engines of documentation sites, from npm; Node itself from Debian where there is none.
NODE := $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends nodejs npm
NPM := npm install --silent --no-audit --no-fund minisearch@7 lunr@2 @orama/orama@3
.venv/node: | $(BIN)/python
	@mkdir -p $@.new && cd $@.new && { { { command -v node && command -v npm; } || { $(NODE); }; } && \
		echo '{"private": true}' >package.json && $(NPM) && mv ../node.new ../node; } >/dev/null 2>&1 || \
		echo "No MiniSearch, Lunr and Orama: apt-get or npm could not install them; the tests that run them will be skipped"
	@rm -rf $@.new

# PostgreSQL's server, which tests start themselves in a temporary folder: Debian's package, where there is none.
.venv/postgresql: | $(BIN)/python
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		$(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends postgresql; } >/dev/null
	@touch $@

# Chromium and what drives it: Debian's packages, where there are none.
.venv/browser: .venv/selenium | $(BIN)/python
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { $(SUDO) apt-get update -qq && \
		$(SUDO) apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core; } >/dev/null
	@touch $@

# axe-core, which looks for what keeps people from using a page.
.venv/axe: | $(BIN)/python
	@mkdir -p $@.new && cd $@.new && { command -v npm >/dev/null || { $(NODE); } >/dev/null; } && \
		echo '{"private": true}' >package.json && npm install --silent --no-audit --no-fund axe-core@4 && mv ../axe.new ../axe
