#!/usr/bin/env bash
# Installs what is missing, builds, runs each fuzzer for 20 seconds and every test: tests/run.sh
# With arguments, which ctest takes, only the tests that they choose.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"
install_packages "$root/cmake/packages.txt" "$root/cmake/packages-tests.txt"

cd "$root"
cmake --preset dev
cmake --build --preset dev
if [[ $# -eq 0 ]]; then bash tests/fuzz/run.sh 20; fi
ctest --test-dir build/dev --output-on-failure "$@"
