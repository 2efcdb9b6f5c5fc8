#!/usr/bin/env bash
# Installs what is missing, builds, and compares our attention with that of other libraries: tests/bench/run.sh
# [arguments for bench_compare: --quick, --json, --case NAME …, see --help]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"
install_packages "$root/cmake/packages.txt" "$root/cmake/packages-bench.txt"

cd "$root"
cmake --preset bench >&2
cmake --build --preset bench --target bench >&2
exec build/bench/tests/bench/bench_compare "$@"
