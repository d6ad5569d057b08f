#!/usr/bin/env bash
# tools/cuda/build.sh OUT [ARCH]: the GEMM and attention kernels with their checker and benchmark,
# by nvcc alone (and fmt): OUT/kernel_check and OUT/kernel_bench, to be run on a machine with a GPU.
set -eu
cd "$(dirname "$0")/../.."
out=$1 arch=${2:-90a}
mkdir -p "$out/gen"
formats=$(cd src/quant && ls *.h | grep -v -e '^format.h$' -e '^half.h$')
{
  for f in $formats; do echo "#include \"quant/$f\""; done
  echo "namespace vitrine { template <typename... F> struct FormatList {};"
  echo "using AllFormats = FormatList<$(for f in $formats; do basename "$f" .h; done | tr a-z A-Z | paste -sd,)>; }"
} >"$out/gen/formats.gen.h"
# nvcc takes fmt's format strings only where fmt may be constexpr.
flags="-std=c++20 -O3 -lineinfo -gencode=arch=compute_$arch,code=sm_$arch -Isrc -I$out/gen --expt-relaxed-constexpr -DFMT_USE_CONSTEXPR=1"
kernels=$(ls src/kernels/cuda/{matmul,weight,attention_tensor}*.cu)
# shellcheck disable=SC2086
for f in $kernels tools/cuda/*.cu src/quant/format.cpp; do
  o=$out/$(basename "${f%.*}").o
  if [ ! -e "$o" ] || [ -n "$(find src/kernels/cuda tools/cuda -newer "$o" -name '*.*h' -o -newer "$o" -path "$f")" ]; then
    echo "$f"
    nvcc $flags -c "$f" -o "$o" &
    while [ "$(jobs -r | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  fi
done
wait
objects=$(for f in $kernels src/quant/format.cpp tools/cuda/kernel_tool.cu; do echo "$out/$(basename "${f%.*}").o"; done)
for tool in kernel_check kernel_bench; do
  # shellcheck disable=SC2086
  nvcc -gencode=arch=compute_$arch,code=sm_$arch -o "$out/$tool" "$out/$tool.o" $objects -lfmt -lpthread -ldl
done
