// For tests and fuzzers: everything that a model's file says.
#pragma once

#include "base/check.h"
#include "formats/model_file.h"

namespace vitrine::test {

// Reads every byte of every tensor and asks every key for every type.
inline std::size_t walk(const ModelFile& model) {
  std::size_t sum = 0;
  auto read = [&sum](std::string_view text) {
    for (char c : text) sum += static_cast<unsigned char>(c);
  };
  for (const TensorInfo& t : model.tensors()) {
    VT_CHECK(model.find(t.name) == &t);
    read({reinterpret_cast<const char*>(t.data.data()), t.data.size()});
  }
  const Meta& meta = model.meta();
  for (const auto& [key, value] : meta.all()) {
    sum += meta.get_int(key).ok() + meta.get_float(key).ok() + meta.get_bool(key).ok();
    if (auto text = meta.get_string(key); text.ok()) read(*text);
    if (auto list = meta.get_ints(key); list.ok()) sum += list->size();
    if (auto list = meta.get_floats(key); list.ok()) sum += list->size();
    if (auto list = meta.get_bools(key); list.ok()) sum += list->size();
    if (auto list = meta.get_strings(key); list.ok())
      for (std::string_view text : *list) read(text);
  }
  read(model.tokenizer_json());
  return sum;
}

}  // namespace vitrine::test
