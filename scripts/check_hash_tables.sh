#!/usr/bin/env bash
# scripts/check_hash_tables.sh ROOT: hash tables of text are OutsideMap and OutsideSet (base/outside_map.h),
# whose hash nobody can predict. Prints every other one.
set -euo pipefail
cd "$1/src"
text='(const\s+)?((std|json|boost)::)*(basic_)?(u8)?string(_view)?\b'
pattern="unordered_(multi)?(map|set)<\s*$text|std::hash<\s*$text"
# Tables may be written over two lines, so files are searched as a whole.
found() { grep -rPzo --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' --exclude='*_test.cpp' "$pattern" "$@" | tr '\0' '\n'; }

for bad in 'std::unordered_map<std::string, int>' $'std::unordered_set<\n    json::string>' 'std::hash<std::string_view>'; do
  grep -qPzo "$pattern" <<<"$bad" || { echo "the pattern misses: $bad"; exit 1; }
done
if found . | grep -v '^\./base/' | grep .; then
  echo 'use OutsideMap or OutsideSet (base/outside_map.h)'
  exit 1
fi
