# Everything sets itself up in .venv; a second run starts at once.

.PHONY: help demo test quick clean

help:
	@echo "make demo    tour of the samples"
	@echo "make test    ruff, mypy and all tests"
	@echo "make quick   the inner loop: tests that are neither slow nor live"
	@echo "make clean   remove what make made"

demo: .venv/.run
	@.venv/bin/scapy-zenoh demo

test: .venv/.dev
	@.ci/setup check || .ci/setup dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python -m scapy_zenoh.compilation & .venv/bin/mypy && wait $$!
	.venv/bin/python -m pytest -n auto --dist worksteal

quick: .venv/.dev
	.venv/bin/python -m pytest -q -n auto --dist worksteal -m 'not slow and not live'

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find scapy_zenoh lua_bridge tests benchmarks samples -name __pycache__ -prune -exec rm -rf {} +

.venv/.run .venv/.dev: pyproject.toml .ci/setup
	@.ci/setup $(@:.venv/.%=%)
	@touch $@
