# Sourced by app/run.sh and tests/run.sh: `install_packages LIST...` installs the Debian packages of the lists that
# are missing, and does nothing, not even an update, where none is.

# One line on stderr, then the end.
fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "no apt-get here: the set-up is for Debian 12; install what $1 names, then cmake --preset release"
  fi
  local wanted missing as_root=()
  mapfile -t wanted < <(cat "$@" | grep -v '^#' | sort -u)
  # dpkg-query fails where it does not know one of the names; what it does not list as installed is missing.
  # shellcheck disable=SC2016  # dpkg-query expands these
  mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}") \
    <(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^ii //p' | sort -u))
  [[ ${#missing[@]} -eq 0 ]] && return

  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || fail "neither root nor sudo; as root: apt-get install --no-install-recommends" \
      "${missing[@]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  echo "installing ${missing[*]}" >&2
  "${apt[@]}" update >&2 || fail "apt-get update failed: see above"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 || fail "apt-get install failed: see above"
}
