#!/usr/bin/env bash
# hardening.sh PROGRAM BUILD COMPILER KIND: what the build promises about PROGRAM, as readelf sees it. KIND names a
# build without that (sanitizers, Debug): 77, skipped.
set -uo pipefail
program=$1 build=$2 compiler=$3 kind=$4
if [ -n "$kind" ]; then
  echo "skipped: a build with $kind is not hardened"
  exit 77
fi
failures=0
# holds TEXT WANTED OF: OF has the pattern WANTED; lacks: it does not.
holds() { grep -qE -- "$2" <<<"$3" || { echo "missing: $1 ($2)" && failures=$((failures + 1)); }; }
lacks() { ! grep -qE -- "$2" <<<"$3" || { echo "found: $1 ($2)" && failures=$((failures + 1)); }; }

dynamic=$(readelf -dW "$program")
segments=$(readelf -lW "$program")
symbols=$(readelf --dyn-syms -W "$program")
holds "position independent" 'FLAGS_1.*\bPIE\b' "$dynamic"
holds "all symbols bound at start" 'FLAGS_1.*\bNOW\b' "$dynamic"
holds "relocations read-only" 'GNU_RELRO' "$segments"
lacks "text relocations" 'TEXTREL' "$dynamic"
holds "a stack that is not executable" 'GNU_STACK .* RW +0x' "$segments"
lacks "a segment to write and execute" 'LOAD .* RWE ' "$segments"
lacks "paths of libraries inside" 'R(UN)?PATH' "$dynamic"
holds "stack protector" ' __stack_chk_fail@' "$symbols"
holds "checked string functions" ' __(mem|str|fd|v?s?n?printf|read|recv|poll)[a-z_]*_chk@' "$symbols"

# The linker marks a program for indirect-branch tracking and shadow stacks when every object is marked. Ours are;
# whether the program is depends on the start files of the system's C library (Debian 12's are not marked).
marked='IBT, SHSTK'
for archive in "$build"/src/*/libvt_*.a; do
  bare=$(readelf -n "$archive" | awk -v marked="$marked" '
    /^File: / { if (file ~ /\.cpp\.o\)$/ && !ok) print file; file = $2; ok = 0 }
    index($0, marked) { ok = 1 }
    END { if (file ~ /\.cpp\.o\)$/ && !ok) print file }')
  lacks "objects without $marked" . "$bare"
done
starts=0
for file in Scrt1.o crti.o crtn.o; do
  readelf -n "$("$compiler" -print-file-name=$file)" | grep -q "$marked" && starts=$((starts + 1))
done
if [ $starts -eq 3 ]; then
  holds "branch tracking and shadow stack" "$marked" "$(readelf -n "$program")"
else
  echo "note: this C library's start files are not marked for branch tracking, so no program is"
fi
exit $((failures > 0))
