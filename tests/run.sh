#!/usr/bin/env bash
# Installs what is missing, builds and runs every test: tests/run.sh [arguments for ctest]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"
install_packages "$root/cmake/packages.txt" "$root/cmake/packages-tests.txt"

cd "$root"
cmake --preset dev
cmake --build --preset dev
exec ctest --test-dir build/dev --output-on-failure "$@"
