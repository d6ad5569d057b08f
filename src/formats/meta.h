// Metadata of a model file as typed keys. GGUF keys keep their names ("llama.block_count");
// config.json is flattened with dots ("rope_parameters.rope_theta").
//
// Strings point into the file's bytes, which outlive the Meta. Arrays are kept as views and decoded
// when asked for, so that a hostile file cannot make loading allocate more than its own size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace vitrine {

enum class MetaType : std::uint8_t { kBool, kInt, kUint, kFloat, kString };
const char* meta_type_name(MetaType type);

// One-dimensional array of scalars or strings.
struct MetaArray {
  MetaType type = MetaType::kInt;
  std::size_t count = 0;
  // Encoded elements (GGUF): `width` bytes each, little endian; strings: u64 length, then bytes.
  // The loader has checked that all of them lie inside the file.
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  int width = 0;
  // Decoded elements (JSON), used when data is null.
  std::vector<std::int64_t> ints;    // kBool, kInt
  std::vector<double> floats;        // kFloat
  std::vector<std::string> strings;  // kString
};

using MetaValue =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, MetaArray>;

class Meta {
 public:
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const MetaValue* find(std::string_view key) const;
  const std::map<std::string, MetaValue, std::less<>>& all() const { return values_; }

  // Typed reads. Missing: kNotFound, names the key. Another type, or a value that does not fit:
  // kMalformed, names key, found and wanted. Integers are accepted where a float is wanted; in
  // arrays only from JSON, which does not tell 1 from 1.0. An empty JSON array has every type.
  Result<std::int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::vector<std::int64_t>> get_ints(std::string_view key) const;
  Result<std::vector<float>> get_floats(std::string_view key) const;
  Result<std::vector<bool>> get_bools(std::string_view key) const;
  // Lengths in a mapped file are read again here; one that no longer fits is kMalformed.
  Result<std::vector<std::string_view>> get_strings(std::string_view key) const;
  // The same with a default for a missing key; still an error for a wrong type.
  Result<std::int64_t> get_int(std::string_view key, std::int64_t missing) const;
  Result<double> get_float(std::string_view key, double missing) const;
  Result<bool> get_bool(std::string_view key, bool missing) const;
  Result<std::string_view> get_string(std::string_view key, std::string_view missing) const;

  // The file has the key with the value null (JSON only). has() is false for it.
  bool is_null(std::string_view key) const { return nulls_.find(key) != nulls_.end(); }

  // For loaders. False when the key exists already.
  bool add(std::string key, MetaValue value);
  void add_null(std::string key) { nulls_.insert(std::move(key)); }

 private:
  std::map<std::string, MetaValue, std::less<>> values_;
  std::set<std::string, std::less<>> nulls_;
};

}  // namespace vitrine
