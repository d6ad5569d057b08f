// Readers for the blocks of tokenizer.json; each checks what it reads and names it in errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/parts.h"

namespace vitrine {

// Fields of an object. Missing and null give `missing` where there is one, else kMalformed.
Result<std::string> json_string(const json::object& object, std::string_view key,
                                std::string_view where);
Result<std::string> json_string(const json::object& object, std::string_view key,
                                std::string_view where, std::string_view missing);
Result<bool> json_bool(const json::object& object, std::string_view key, std::string_view where,
                       bool missing);
Result<std::int64_t> json_int(const json::object& object, std::string_view key,
                              std::string_view where, std::int64_t missing);
// Null when the field is missing or null; kMalformed for another type.
Result<const json::object*> json_object(const json::object& object, std::string_view key,
                                        std::string_view where);
Result<const json::array*> json_array(const json::object& object, std::string_view key,
                                      std::string_view where);

// {"String": "..."} or {"Regex": "..."}.
struct JsonPattern {
  std::string text;
  bool regex;
};
Result<JsonPattern> json_pattern(const json::object& object, std::string_view where);

Status read_normalizer(const json::object& object, Normalizer& out);
// `byte_level`: set when the last step spells bytes in GPT-2's alphabet; that step is then left
// out.
Status read_pre_tokenizer(const json::object& object, PreTokenizer& out, bool& byte_level);
Status read_decoder(const json::object& object, TokenDecoder& out);
// The model's vocabulary into parts.vocab; the model itself only after the added tokens are known.
Status read_vocab(const json::object& model, Vocab& vocab, std::vector<double>& scores);
Status read_model(const json::object& model, const std::vector<double>& scores, bool byte_level,
                  TokenizerParts& parts);

}  // namespace vitrine
