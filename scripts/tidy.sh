#!/usr/bin/env bash
# scripts/tidy.sh BUILD [FILE...]: clang-tidy, warnings as errors, on these files or on those that changed
# last, by the history. The whole tree takes 25 minutes on 2 cores, so no more than $most are read. It reads
# them without precompiled headers, which shows a file that forgot an include.
set -euo pipefail
most=60
build=$1
shift
# The folder's compile commands without what clang does not know: GCC's precompiled headers and options.
mkdir -p "$build/tidy"
sed -E 's/ -include [^ ]*cmake_pch[^ ]*//; s/ -Winvalid-pch//; s/ -Wno-(maybe-uninitialized|mismatched-new-delete|tsan)//g' \
  "$build/compile_commands.json" >"$build/tidy/compile_commands.json"

# Sources that changed, and those of changed headers, the newest first: what is not committed, then the
# files of the last commits.
changed() {
  {
    git diff --name-only HEAD
    git log --no-renames --name-only --format= -n 200
  } | grep -E '^(src/.*\.(cpp|h)|tests/.*\.cpp)$' | sed 's/\.h$/.cpp/'
}

# Kernels use GCC's own intrinsics; files that are gone or not part of this build have no command.
if [ $# -eq 0 ]; then
  mapfile -t files < <(changed | awk '!seen[$0]++' | grep -vE '^src/kernels/(cpu|cuda)/' | while read -r file; do
    [ -f "$file" ] && grep -q "\"file\": \".*/$file\"" "$build/tidy/compile_commands.json" && echo "$file"
  done)
else
  files=("$@")
fi
[ ${#files[@]} -gt $most ] && echo "clang-tidy: the $most files that changed last" >&2
printf '%s\n' "${files[@]:0:$most}" | xargs -r -P "$(nproc)" -n 4 clang-tidy-14 --quiet -p "$build/tidy" --warnings-as-errors='*' \
  2> >(grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter' >&2)
