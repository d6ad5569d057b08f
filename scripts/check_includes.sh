#!/usr/bin/env bash
# scripts/check_includes.sh ROOT DECLARED: holds the #include lines of ROOT/src against the dependencies
# that vt_module declares (DECLARED, written by CMake: lines "FOLDER PUBLIC|PRIVATE|TESTS FOLDER") and
# against the order that ARCHITECTURE.md states ("base <- tensor <- ..."). Prints every difference.
set -euo pipefail
root=$1 declared=$2
cd "$root/src"
folders=$(ls -d */ | tr -d / | paste -sd '|')

# Lines "FOLDER SCOPE FOLDER" of what files include. A header makes it PUBLIC, a source PRIVATE, a file
# of tests TESTS; the strongest counts.
included() {
  grep -rHoE "^#include \"($folders)/" --include='*.h' --include='*.cuh' --include='*.cpp' --include='*.cc' \
    --include='*.cu' . | awk -F'[/:"]' '
      {
        user = $2; used = $(NF - 1); file = $0
        sub(/:#include.*/, "", file); sub(/.*\//, "", file)
        if (user == used) next
        level = file ~ /(^|_)test(ing)?[_.]|_bench\./ ? 1 : file ~ /\.c[a-z]*$/ && file !~ /\.cuh$/ ? 2 : 3
        if (level > most[user " " used]) most[user " " used] = level
      }
      END {
        split("TESTS PRIVATE PUBLIC", scope, " ")
        for (pair in most) { split(pair, p, " "); print p[1], scope[most[pair]], p[2] }
      }' | LC_ALL=C sort
}

# Lines "FOLDER: ..." for every dependency on a folder that ARCHITECTURE.md does not name before its user.
out_of_order() {
  awk '
    FILENAME ~ /\.md$/ {
      if ($0 !~ /^ *base <- /) next
      levels = split($0, level, " *<- *")
      for (i = 1; i <= levels; ++i) {
        n = split(level[i], names, /[^a-z]+/)
        for (j = 1; j <= n; ++j) if (names[j] != "") rank[names[j]] = i
      }
      next
    }
    levels == 0 { print "ARCHITECTURE.md: no line \"base <- ...\" states the order of the folders"; exit }
    ($1 in rank) && ($3 in rank) && rank[$3] >= rank[$1] {
      print $1 ": depends on " $3 ", which ARCHITECTURE.md puts beside or after it"
    }' "$root/ARCHITECTURE.md" "$declared"
}

# Lines for every folder that is part of a cycle.
cycles() {
  awk '$2 != "TESTS" { print $3, $1 }' "$declared" | { LC_ALL=C tsort 2>&1 >/dev/null || true; } |
    sed -n 's/^tsort: \([a-z]*\)$/\1: is part of a cycle/p'
}

problems=$(
  LC_ALL=C comm -3 <(included) <(LC_ALL=C sort "$declared") | awk -F'\t' '
    $1 != "" { split($1, p, " "); print p[1] ": includes " p[3] "/, but vt_module does not declare it " p[2] }
    $2 != "" { split($2, p, " "); print p[1] ": vt_module declares " p[2] " " p[3] ", but the includes do not say so" }'
  out_of_order
  cycles
)
[ -z "$problems" ] && exit 0
echo "$problems"
exit 1
