# Sourced by ./run and ./test: the packages, and a build of one preset.

# Debian 12's names; Ubuntu 24.04 has the same but for the version in Boost's.
vt_packages() {
  local boost=1.81
  . /etc/os-release
  [ "${VERSION_ID:-}" = 24.04 ] && boost=1.83
  echo g++ cmake ninja-build pkg-config libboost-json$boost-dev libboost$boost-dev libssl-dev \
    libfmt-dev libcli11-dev libutf8proc-dev libpcre2-dev libgtest-dev libgmock-dev libbenchmark-dev
}

# What only the tests need. Node often comes from elsewhere, so the programs are looked for.
vt_test_packages() {
  command -v curl >/dev/null || echo curl
  command -v node >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
}

# vt_install [PACKAGE...]: installs what is missing of the build's packages and these, as root or by
# sudo; otherwise prints the command and stops.
vt_install() {
  local missing=() package
  command -v dpkg-query >/dev/null || return 0
  for package in $(vt_packages) "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local command="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    echo "installing: ${missing[*]}" >&2
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive $command -qq) >&2
  elif sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; then
    echo "installing with sudo: ${missing[*]}" >&2
    (sudo apt-get update -qq && sudo DEBIAN_FRONTEND=noninteractive $command -qq) >&2
  else
    echo "error: packages are missing; install them with:" >&2
    echo "  sudo apt-get update && sudo $command" >&2
    exit 1
  fi
}

# vt_build PRESET [TARGET...]: quiet unless it fails or somebody watches.
vt_build() {
  local preset=$1
  shift
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >&2
  if [ -t 2 ]; then
    cmake --build "build/$preset" ${1:+--target "$@"} >&2
  else
    local log
    log=$(cmake --build "build/$preset" ${1:+--target "$@"} 2>&1) || { echo "$log" >&2; exit 1; }
  fi
}
