// A safetensors file.
#include "formats/safetensors.h"

#include "fuzz/fuzz.h"

using namespace vitrine;

void fuzz_one(fuzz::Input input) {
  auto tensors = parse_safetensors(input.bytes(), "m");
  if (!tensors.ok()) return;
  std::size_t covered = 0;
  volatile std::size_t sum = 0;
  for (const TensorInfo& t : *tensors) {
    covered += t.data.size();
    for (std::byte b : t.data) sum = sum + static_cast<std::size_t>(b);
  }
  VT_CHECK(covered <= input.size());
}
