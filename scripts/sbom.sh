#!/usr/bin/env bash
# scripts/sbom.sh PROGRAM VERSION OUT [NAME=VERSION=FILE...]: what PROGRAM is made of, as CycloneDX 1.5 JSON. Shared
# libraries are those it asks the loader for; FILEs are what it was compiled with: a header or a linker's name of a
# library, a model. Names, versions and licences come from Debian's packages where there are any ($DPKG_QUERY: the
# program to ask); elsewhere from the arguments. The same program gives the same bytes; $SOURCE_DATE_EPOCH adds a date.
set -euo pipefail
export LC_ALL=C
program=$1 version=$2 out=$3
shift 3
dpkg=${DPKG_QUERY:-dpkg-query}

quote() { printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }
sha256() { sha256sum "$1" | cut -d' ' -f1; }

# package FILE: "NAME VERSION ARCHITECTURE" of the package that brought it; packages know files by the name with or
# without /usr.
package() {
  local file name
  command -v "$dpkg" >/dev/null || return 0
  for file in "$1" "$(readlink -f "$1")" "/usr$1" "${1#/usr}"; do
    name=$("$dpkg" -S "$file" 2>/dev/null | head -n 1) || continue
    "$dpkg" -W -f '${Package} ${Version} ${Architecture}\n' "${name%%: *}" && return
  done
}

# The licence of a package as a whole, where its copyright file is written for machines.
licence() {
  sed -n '/^Files: *\*$/,/^$/s/^License: *//p' "/usr/share/doc/$1/copyright" 2>/dev/null | head -n 1
}

# component TYPE FILE NAME VERSION SONAME
component() {
  local type=$1 file=$2 name=$3 number=$4 soname=$5 found licence= more=
  found=$([ "$type" = library ] && package "$file") || true
  if [ -n "$found" ]; then
    local architecture
    read -r name number architecture <<<"$found"
    licence=$(licence "$name") || true
    more=", \"purl\": $(quote "pkg:deb/$system/${name//+/%2B}@${number//+/%2B}?arch=$architecture")"
    [ -n "$licence" ] && more+=", \"licenses\": [{\"license\": {\"name\": $(quote "$licence")}}]"
  fi
  [ "$type" = library ] || more=", \"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"$(sha256 "$file")\"}]"
  [ -n "$number" ] && more=", \"version\": $(quote "$number")$more"
  [ -n "$soname" ] && more+=", \"properties\": [{\"name\": \"vitrine:soname\", \"value\": $(quote "$soname")}]"
  printf '{"type": "%s", "bom-ref": %s, "name": %s%s}\n' "$type" "$(quote "${soname:-$name}")" "$(quote "$name")" "$more"
}

# known SONAME: "NAME VERSION" from the arguments: a library's linker name is its SONAME without the version.
known() {
  local one file
  for one in "${given[@]}"; do
    file=${one##*=}
    case ${file##*/} in "${1%%.so*}".so*) echo "${one%%=*} $(cut -d= -f2 <<<"$one")" && return ;; esac
  done
  echo "$1"
}

given=("$@")
system=$(. /etc/os-release 2>/dev/null && echo "${ID:-}")
components=$({
  loaded=$(ldd "$program")
  readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r soname; do
    file=$(awk -v so="$soname" '$1 == so && $2 == "=>" { print $3 } $1 ~ "/" so "$" { print $1 }' <<<"$loaded" | head -n 1)
    read -r name number <<<"$(known "$soname")"
    component library "$file" "$name" "$number" "$soname"
  done
  for one in "${given[@]}"; do
    file=${one##*=} name=${one%%=*} number=$(cut -d= -f2 <<<"$one")
    case $file in
      *.so*) ;; # among the above
      *.gguf) component machine-learning-model "$file" "$name" "$number" "" ;;
      *) component library "$file" "$name" "$number" "" ;;
    esac
  done
} | sort -u)

{
  printf '{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,\n"metadata": {'
  [ -n "${SOURCE_DATE_EPOCH:-}" ] && printf '"timestamp": "%s", ' "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
  printf '"component": {"type": "application", "bom-ref": "vitrine", "name": "vitrine", "version": %s, ' "$(quote "$version")"
  printf '"hashes": [{"alg": "SHA-256", "content": "%s"}]}},\n"components": [\n' "$(sha256 "$program")"
  sed '$!s/$/,/' <<<"$components"
  printf '],\n"dependencies": [{"ref": "vitrine", "dependsOn": [%s]}]}\n' \
    "$(sed -n 's/.*"bom-ref": \("[^"]*"\).*/\1/p' <<<"$components" | paste -sd , | sed 's/,/, /g')"
} >"$out.new"
mv "$out.new" "$out"
