// What libFuzzer calls.
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz_one(vitrine::fuzz::Input({data, size}));
  return 0;
}
