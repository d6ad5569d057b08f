#!/usr/bin/env bash
# page.sh CMAKE ROOT: how cmake/build_page.cmake builds the page, with a stand-in for npm: when it calls npm, what it
# embeds, and what it makes of failures.
set -uo pipefail
cmake=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/ui/src" "$work/ui/plain" "$work/page" "$work/out"
echo '{}' >"$work/ui/package.json"
echo 'lock 1' >"$work/ui/package-lock.json"
echo 'one' >"$work/ui/src/main.js"
echo '<html lang=plain>' >"$work/ui/plain/index.html"
printf '%s\n' package.json package-lock.json src/main.js >"$work/page/sources.txt"
# Says what it was asked for. "ci" and "build" in $work/fail make it fail.
cat >"$work/npm" <<END
#!/usr/bin/env bash
echo "\${1/run/}\${2/--*/}" >>"$work/calls"
case \$1 in
  ci) grep -q ci "$work/fail" && rm -rf node_modules && echo no network >&2 && exit 1; mkdir -p node_modules ;;
  run)
    grep -q build "$work/fail" && echo a wrong line >&2 && exit 1
    mkdir -p dist/assets
    cp src/main.js dist/assets/main-1.js
    gzip -nkf dist/assets/main-1.js
    echo '{}' >dist/assets/main-1.js.map
    cp "$work/extra"* dist 2>/dev/null
    echo '<html lang=built>' >dist/index.html ;;
esac
exit 0
END
chmod +x "$work/npm"
: >"$work/fail"

failures=0
fail() { echo "$case: $*" && failures=$((failures + 1)); }
# build MODE STATUS CALLS STAMP: a build that has to end so, with these calls of npm, and leave a stamp or none.
build() {
  : >"$work/calls"
  "$cmake" -D UI="$work/ui" -D WORK="$work/page" -D NPM="$work/npm" -D MODE="$1" -D OUT="$work/out/gen.cpp" \
    -P "$root/cmake/build_page.cmake" >"$work/log" 2>&1
  local status=$? calls stamp=none
  calls=$(paste -sd ' ' "$work/calls")
  [ -e "$work/page/stamp" ] && stamp=stamp
  [ $status -ne 0 ] && status=1
  [ "$status $calls $stamp" = "$2 $3 $4" ] ||
    fail "status, calls, stamp: found '$status $calls $stamp', expected '$2 $3 $4'" "$(cat "$work/log")"
}
holds() { grep -q -- "$1" "$2" || fail "$2 lacks $1: $(cat "$2")"; }
lacks() { ! grep -q -- "$1" "$2" || fail "$2 has $1"; }
gen=$work/out/gen.cpp

# npm 9.2, which Debian 12 has, stops at a lock whose overrides name another package ("Invalid comparator").
case=overrides
for file in ui tests/ui tests/api; do
  lacks '"overrides"' "$root/$file/package.json"
done

case="the first time"
build auto 0 "ci build" stamp
holds '{"/", content_type("index.html"), ' "$gen"
holds '{"/ui/assets/main-1.js", content_type("assets/main-1.js"), ' "$gen"
holds "assets/main-1.js.gz" "$gen"
lacks "main-1.js.map" "$gen"
lacks "/ui/assets/main-1.js.gz" "$gen"
case="nothing changed"
before=$(stat -c %y "$gen")
touch "$work/ui/src/main.js"
build auto 0 "" stamp
[ "$before" = "$(stat -c %y "$gen")" ] || fail "the source was written again"
case="a source changed"
echo two >"$work/ui/src/main.js"
build auto 0 "build" stamp
holds "$(sha256sum <"$work/ui/src/main.js" | cut -c1-32)" "$gen"
case="a source came and another went"
echo new >"$work/ui/src/new.js"
printf '%s\n' package.json package-lock.json src/main.js src/new.js >"$work/page/sources.txt"
build auto 0 "build" stamp
[ -e "$work/page/ui/src/new.js" ] || fail "it was not copied"
printf '%s\n' package.json package-lock.json src/main.js >"$work/page/sources.txt"
build auto 0 "build" stamp
[ ! -e "$work/page/ui/src/new.js" ] || fail "it is still there"
case="the lock changed"
echo 'lock 2' >"$work/ui/package-lock.json"
build auto 0 "ci build" stamp
case="no network"
echo 'lock 3' >"$work/ui/package-lock.json"
echo ci >"$work/fail"
build auto 0 "ci" none
holds "no network" "$work/log"
holds "ui/plain is embedded" "$work/log"
holds "ui/plain/index.html" "$gen"
lacks "main-1.js" "$gen"
build auto 0 "ci" none
build ON 1 "ci" none
case="the network is back"
: >"$work/fail"
build auto 0 "ci build" stamp
holds "main-1.js" "$gen"
case="the build fails"
echo build >"$work/fail"
echo three >"$work/ui/src/main.js"
build auto 1 "build" none
holds "a wrong line" "$work/log"
build ON 1 "build" none
: >"$work/fail"
build ON 0 "build" stamp
case="an encoding of nothing"
: >"$work/extra.js.br"
echo four >"$work/ui/src/main.js"
build auto 1 "build" none
holds "extra.js.br: found no extra.js beside it" "$work/log"
exit $((failures > 0))
