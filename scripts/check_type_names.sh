#!/usr/bin/env bash
# scripts/check_type_names.sh ROOT: two files of src must not define a type of the same name in the same namespace. Such a program
# is undefined: the linker takes one destructor for both. Types of unnamed namespaces are their file's own.
set -euo pipefail
# same FOLDER: the names that two of its files define.
same() {
  cd "$1"
  find . \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) \
  ! -name '*test*' ! -name '*bench*' -print | sort | xargs awk '
  FNR == 1 { depth = 0 }
  /^namespace[ a-z_A-Z0-9:]*\{/ {
    name = $0; sub(/^namespace */, "", name); sub(/ *\{.*/, "", name); space[depth++] = name == "" ? "?" : name; next
  }
  /^}  \/\/ namespace/ { if (depth > 0) depth--; next }
  /^(struct|class|enum class|union) +(alignas\([^)]*\) +)?[A-Za-z_0-9]+( final)?( *:[^:].*)? *\{/ {
    type = $0; sub(/^(struct|class|enum class|union) +(alignas\([^)]*\) +)?/, "", type); sub(/[^A-Za-z_0-9].*/, "", type)
    full = ""
    for (i = 0; i < depth; ++i) { if (space[i] == "?") next; full = full space[i] "::" }
    full = full type
    if (full in where && where[full] != FILENAME) print full ": " where[full] " and " FILENAME
    where[full] = FILENAME
  }'
}

try=$(mktemp -d)
trap 'rm -rf "$try"' EXIT
printf 'namespace vitrine {\nclass Twice final : public Base {\n};\n}  // namespace vitrine\n' | tee "$try/a.h" >"$try/b.h"
printf 'namespace vitrine {\nnamespace {\nstruct Own {\n};\n}  // namespace\n}  // namespace vitrine\n' | tee "$try/a.cpp" >"$try/b.cpp"
[ "$(same "$try")" = 'vitrine::Twice: ./a.h and ./b.h' ] || { echo "the check itself is wrong: $(same "$try")"; exit 1; }
found=$(same "$1/src")
[ -z "$found" ] && exit 0
echo "the same type name in two files:"
echo "$found"
exit 1
