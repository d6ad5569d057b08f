// A GGUF file; its tokenizer and template: tokenizer_gguf.cpp.
#include "formats/test_walk.h"
#include "fuzz/fuzz.h"

using namespace vitrine;

void fuzz_one(fuzz::Input input) {
  auto model = ModelFile::open_gguf(input.bytes(), "m");
  if (model.ok()) test::walk(**model);
}
