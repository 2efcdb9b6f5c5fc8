#!/usr/bin/env bash
# Builds the fuzzers with clang and runs each: tests/fuzz/run.sh [seconds for each, 20 where it is left out]
# A file that ends one of them is kept in build/fuzz/crashes.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-20}
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"
install_packages "$root/cmake/packages.txt" "$root/cmake/packages-tests.txt"

cd "$root"
cmake --preset fuzz
cmake --build --preset fuzz

cd build/fuzz
rm -rf corpus arrays
mkdir -p corpus crashes arrays
arrays=()
if /usr/bin/python3 "$root/tests/support/make_arrays.py" arrays; then arrays=(arrays); fi
/usr/bin/python3 "$root/tests/fuzz/make_corpus.py" corpus "${arrays[@]}"

# One fuzzer: NAME SECONDS. Its words are shown only where it finds something.
fuzz() {
  local name=$1 log=$1.log
  if UBSAN_OPTIONS=print_stacktrace=1 "tests/fuzz/qkv_fuzz_$name" "corpus/$name" -dict="$root/tests/fuzz/words.dict" \
    -max_total_time="$2" -max_len=16384 -timeout=120 -rss_limit_mb=2048 -artifact_prefix="crashes/$name-" >"$log" 2>&1; then
    echo "fuzz $name: nothing found, $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") runs in $2 s"
  else
    tail -n 60 "$log"
    echo "fuzz $name: found something, see build/fuzz/$log and build/fuzz/crashes" >&2
    return 1
  fi
}
export -f fuzz
export root
printf '%s\n' npy npz safetensors session table |
  xargs -P "$(nproc)" -I{} bash -c 'fuzz "$@"' _ {} "$seconds"
