#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window: app/run.sh [arguments for qkvlab]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"
install_packages "$root/cmake/packages.txt"

# What the build says is shown only where it fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
fail_with_log() {
  cat "$log" >&2
  fail "$* failed: see above"
}

build=$root/build/release
if [[ ! -f $build/build.ninja ]]; then
  (cd "$root" && cmake --preset release) >"$log" 2>&1 || fail_with_log "cmake --preset release"
fi
told=
while IFS= read -r line; do
  echo "$line" >>"$log"
  [[ $line =~ ^(\[[0-9]+/[0-9]+\])\ (Building|Linking|Generating) ]] || continue
  [[ -n $told ]] || echo "building qkvlab, a few minutes the first time" >&2
  told=yes
  [[ ! -t 2 ]] || printf '\r%s ' "${BASH_REMATCH[1]}" >&2
done < <(ninja -C "$build" qkvlab 2>&1)
wait $! || fail_with_log "ninja -C $build qkvlab"
[[ -z $told || ! -t 2 ]] || printf '\r' >&2

rm -f "$log"
exec "$build/qkvlab" "$@"
