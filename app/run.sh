#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window: app/run.sh [arguments for qkvlab]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"
install_packages "$root/cmake/packages.txt"

# The output of a build is shown only where the build fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  "$@" >"$log" 2>&1 && return
  cat "$log" >&2
  fail "$* failed: see above"
}
build=$root/build/release
if [[ ! -f $build/build.ninja ]]; then
  echo "configuring $build" >&2
  (cd "$root" && quietly cmake --preset release)
fi
if [[ $(ninja -C "$build" -n qkvlab) != *"no work to do"* ]]; then
  echo "building qkvlab (a few minutes the first time)" >&2
  quietly ninja -C "$build" qkvlab
fi
rm -f "$log"
exec "$build/qkvlab" "$@"
