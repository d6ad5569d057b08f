// Reads a model's configuration under its GGUF and its Hugging Face names.
//
// Errors stick: the first one is kept, later reads return harmless values, and the loader asks
// status() once at the end. Every number has a range, because it comes from a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"

namespace vitrine {

// One setting's key in each spelling. GGUF keys come without the architecture ("block_count" is
// read as "llama.block_count"). An empty name: that kind of file does not have it.
struct Key {
  std::string_view gguf;
  std::string_view hf;
};

class ConfigReader {
 public:
  explicit ConfigReader(const ModelFile& file);

  bool gguf() const { return file_.kind() == FileKind::kGguf; }
  const ModelFile& file() const { return file_; }
  bool has(Key key) const;
  bool has_list(Key key) const;

  // Required, within [min, max].
  int integer(Key key, std::int64_t min, std::int64_t max);
  float number(Key key, double min, double max);
  // With a value for when the key is missing.
  int integer_or(Key key, std::int64_t min, std::int64_t max, std::int64_t missing);
  float number_or(Key key, double min, double max, double missing);
  bool boolean_or(Key key, bool missing);
  std::string string_or(Key key, std::string_view missing);
  // 0 for an explicit null, which HF writes for "switched off".
  int nullable_integer_or(Key key, std::int64_t min, std::int64_t max, std::int64_t missing);
  float nullable_number_or(Key key, double min, double max, double missing);
  // Empty when missing.
  std::vector<std::string> strings(Key key);
  std::vector<float> numbers(Key key);
  std::vector<bool> booleans(Key key);

  // Refuses a file that asks for what is not computed here: a flag with the other value, a count
  // above zero. Missing is fine.
  void only(Key key, bool value);
  void none(Key key, std::string_view what);

  void fail(Error error);
  Status status() const;

 private:
  // The key as it stands in this file; also found under "text_config." in multimodal configs.
  std::string resolve(Key key) const;

  const ModelFile& file_;
  std::optional<Error> error_;
};

}  // namespace vitrine
