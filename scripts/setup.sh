# Sourced by ./run, ./test and .ci/run: the packages, and a build of one preset. Everything that is
# printed here goes to stderr; stdout is the program's.

# Debian 12's names; Ubuntu 24.04 has the same but for the version in Boost's.
vt_packages() {
  local boost=1.81
  . /etc/os-release
  [ "${VERSION_ID:-}" = 24.04 ] && boost=1.83
  echo g++ cmake ninja-build pkg-config libboost$boost-dev libssl-dev \
    libfmt-dev libcli11-dev libutf8proc-dev libpcre2-dev
}

# What only the tests need. Node often comes from elsewhere, so the programs are looked for.
vt_test_packages() {
  command -v curl >/dev/null || echo curl
  echo libgtest-dev libgmock-dev libbenchmark-dev
  command -v node >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
  # For the page. (Ubuntu's is a snap: there its tests are skipped unless VITRINE_CHROMIUM names one.)
  . /etc/os-release
  [ "${ID:-}" != debian ] || [ -n "${VITRINE_CHROMIUM:-}" ] || command -v chromium >/dev/null || echo chromium
}

# What only .ci/run needs. The versions are given because they differ in what they ask for.
vt_check_packages() {
  echo git clang-format-14 clang-tidy-14
}

# What only ./test fuzz needs: libFuzzer comes with clang.
vt_fuzz_packages() {
  echo clang-14 libclang-rt-14-dev
}

# What the page is built with (ui/), unless $VITRINE_UI is OFF.
vt_page_packages() {
  [ "${VITRINE_UI:-}" = OFF ] && return 0
  command -v node >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
}

# Whether node can build the page (src/glass/CMakeLists.txt asks for the same).
vt_node_builds_page() {
  command -v npm >/dev/null && command -v node >/dev/null &&
    node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 18 || (a === 18 && b >= 19) ? 0 : 1)'
}

# vt_install_page: as vt_install, but the program does without: where that needs a password or fails, a
# hint on stderr, once for a build folder, and the plain page.
vt_install_page() {
  local missing tried=build/release/page-packages-tried
  missing=$(vt_page_packages | paste -sd ' ')
  [ -z "$missing" ] && return 0
  if [ "${VITRINE_UI:-}" = ON ]; then
    vt_install $missing
    return
  fi
  [ -e $tried ] && return 0
  mkdir -p build/release && : >$tried
  if command -v dpkg-query >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; } &&
    (vt_install $missing); then
    return 0
  fi
  echo "hint: the web page is a plain one; for the full one (it needs node 18.19 or newer):" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing" >&2
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

# Whether ./run builds the cuda backend: $VITRINE_CUDA if it is set (auto, ON or OFF); otherwise where
# there is a driver, since compiling the kernels takes as long as the rest.
vt_cuda() {
  if [ -n "${VITRINE_CUDA:-}" ]; then
    echo "$VITRINE_CUDA"
  elif [ -e /dev/nvidiactl ] || command -v nvidia-smi >/dev/null ||
    /sbin/ldconfig -p 2>/dev/null | grep 'libcuda\.so\.1' >/dev/null; then
    echo auto
  else
    echo OFF
  fi
}

# cmake's argument for $VITRINE_UI, where it is set (auto, ON or OFF).
vt_ui() {
  [ -z "${VITRINE_UI:-}" ] || echo "-DVITRINE_UI=$VITRINE_UI"
}

# vt_cached PRESET NAME: a variable of the build folder's cache; empty when there is none.
vt_cached() {
  sed -n "s/^$2:[A-Z]*=//p" "build/$1/CMakeCache.txt" 2>/dev/null || true
}

# vt_configure_program: a build folder for ./run, without tests. One that is there stays as it is,
# unless $VITRINE_CUDA or $VITRINE_UI asks for something else, or node has come for the page.
vt_configure_program() {
  if [ ! -f build/release/build.ninja ]; then
    cmake --preset release -DVITRINE_TESTS=OFF "-DVITRINE_CUDA=$(vt_cuda)" $(vt_ui) >&2
  elif [ -n "${VITRINE_UI:-}" ] && [ "$VITRINE_UI" != "$(vt_cached release VITRINE_UI)" ]; then
    cmake --preset release ${VITRINE_CUDA:+"-DVITRINE_CUDA=$VITRINE_CUDA"} $(vt_ui) >&2
  elif [ -n "${VITRINE_CUDA:-}" ] && [ "$VITRINE_CUDA" != "$(vt_cached release VITRINE_CUDA)" ]; then
    cmake --preset release "-DVITRINE_CUDA=$VITRINE_CUDA" >&2
  elif [ -n "${CUDACXX:-}" ] && [ "$CUDACXX" != "$(vt_cached release VITRINE_NVCC)" ]; then
    cmake --preset release >&2
  elif [ "$(vt_cached release VITRINE_UI)" = auto ] && [ "$(vt_cached release VITRINE_UI_KIND)" = plain ] &&
    [ -f ui/package-lock.json ] && vt_node_builds_page; then
    cmake --preset release >&2
  fi
}

# vt_configure PRESET: a build folder with tests. One that ./run made gets what it left out.
vt_configure() {
  if [ "$(vt_cached "$1" VITRINE_TESTS)" = OFF ]; then
    cmake --preset "$1" -DVITRINE_TESTS=ON "-DVITRINE_CUDA=${VITRINE_CUDA:-auto}" $(vt_ui) >&2
  elif [ ! -f "build/$1/build.ninja" ]; then
    cmake --preset "$1" $(vt_ui) >&2
  fi
}

# For tests of the presets asan and tsan.
vt_sanitizer_options() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
  export TSAN_OPTIONS="second_deadlock_stack=1 halt_on_error=1"
}

# vt_build PRESET [TARGET...]: on a terminal ninja shows where it is; elsewhere a line every few
# seconds does. Warnings and errors are shown whole.
vt_build() {
  local preset=$1
  shift
  if [ -t 2 ]; then
    cmake --build "build/$preset" ${1:+--target "$@"} >&2
  else
    cmake --build "build/$preset" ${1:+--target "$@"} 2>&1 | vt_progress >&2
  fi
}

# Thins out ninja's lines "[120/420] ...". Where one step takes long, the last of them is said again.
vt_progress() {
  local line part='' last='' status next=$((SECONDS + 3))
  while :; do
    status=0
    IFS= read -r -t 10 line || status=$?
    line=$part$line part=''
    if [ $status -gt 128 ]; then
      part=$line
      [ -n "$last" ] && printf '%s (still at work)\n' "${last%%]*}]"
      continue
    fi
    [ $status -eq 0 ] || [ -n "$line" ] || break
    case $line in
      '['*/*']'*)
        last=$line
        [ $SECONDS -lt $next ] && continue
        next=$((SECONDS + 5))
        ;;
      'ninja: no work to do.' | '-- '*) continue ;;
    esac
    printf '%s\n' "$line"
  done
}
