// The chains of tokenizer.json: normalizer, pre_tokenizer, decoder.
#include "base/utf8.h"
#include "tokenizer/load_json.h"

namespace vitrine {
namespace {

template <typename Read>
Status read_sequence(const json::object& object, std::string_view key, std::string_view where,
                     Read&& read) {
  VT_TRY(const json::array* list, json_array(object, key, where));
  if (list == nullptr)
    return make_error(ErrorCode::kMalformed, "tokenizer.json: {}.{} is missing", where, key);
  for (const json::value& item : *list) {
    if (!item.is_object())
      return make_error(ErrorCode::kMalformed, "tokenizer.json: {}.{} must hold objects", where,
                        key);
    VT_RETURN_IF_ERROR(read(item.get_object()));
  }
  return Ok{};
}

Status check_steps(std::size_t steps, std::string_view where) {
  if (steps < kMostSteps) return Ok{};
  return make_error(ErrorCode::kTooLarge, "tokenizer.json: {} has more than {} steps", where,
                    kMostSteps);
}

Error unsupported(std::string_view where, std::string_view type) {
  return make_error(ErrorCode::kUnsupported, "tokenizer.json: {} of type \"{}\" is not supported",
                    where, type);
}

Result<std::string> one_character(const json::object& object, std::string_view key,
                                  std::string_view where) {
  VT_TRY(std::string text, json_string(object, key, where));
  if (text.empty() || static_cast<std::size_t>(utf8_next(text).length) != text.size())
    return make_error(ErrorCode::kMalformed,
                      "tokenizer.json: {}.{} is \"{}\"; it must be one character", where, key,
                      text);
  return text;
}

Result<SplitBehavior> split_behavior(const json::object& object, std::string_view missing) {
  static constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  VT_TRY(std::string name, json_string(object, "behavior", "pre_tokenizer", missing));
  for (auto [known, behavior] : kNames)
    if (known == name) return behavior;
  return make_error(ErrorCode::kMalformed,
                    "tokenizer.json: pre_tokenizer.behavior is \"{}\"; it must be Removed, "
                    "Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
                    name);
}

Result<PrependScheme> prepend_scheme(const json::object& object, std::string_view where) {
  VT_TRY(bool prefix, json_bool(object, "add_prefix_space", where, true));
  VT_TRY(std::string name,
         json_string(object, "prepend_scheme", where, prefix ? "always" : "never"));
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return make_error(
      ErrorCode::kMalformed,
      "tokenizer.json: {}.prepend_scheme is \"{}\"; it must be always, first or never", where,
      name);
}

CharSet category_set(CategoryMask mask) {
  CharSet set;
  set.add_categories(mask);
  return set;
}

CharSet space_set() {
  CharSet set;
  set.add_space();
  return set;
}

CharSet punctuation_set() {
  CharSet set = category_set(category_mask("P"));
  set.add_range('!', '/');
  set.add_range(':', '@');
  set.add_range('[', '`');
  set.add_range('{', '~');
  return set;
}

Status read_replace(const json::object& object, Normalizer& out) {
  VT_TRY(JsonPattern pattern, json_pattern(object, "normalizer"));
  VT_TRY(std::string content, json_string(object, "content", "normalizer"));
  if (!pattern.regex) {
    out.add(norm::Replace{std::move(pattern.text), std::move(content)});
    return Ok{};
  }
  VT_TRY(Regex regex, Regex::compile(pattern.text));
  out.add(norm::ReplaceRegex{std::move(regex), std::move(content)});
  return Ok{};
}

Status read_bert(const json::object& object, Normalizer& out) {
  VT_TRY(bool clean, json_bool(object, "clean_text", "normalizer", true));
  VT_TRY(bool chinese, json_bool(object, "handle_chinese_chars", "normalizer", true));
  VT_TRY(bool lowercase, json_bool(object, "lowercase", "normalizer", true));
  VT_TRY(bool accents, json_bool(object, "strip_accents", "normalizer", lowercase));
  out.add(norm::Bert{clean, chinese, accents, lowercase});
  return Ok{};
}

Status read_precompiled(const json::object& object, Normalizer& out) {
  VT_TRY(std::string text, json_string(object, "precompiled_charsmap", "normalizer", ""));
  if (text.empty()) return Ok{};
  std::optional<std::string> bytes = decode_base64(text);
  if (!bytes)
    return make_error(ErrorCode::kMalformed,
                      "tokenizer.json: normalizer.precompiled_charsmap is not base64");
  VT_TRY(Charsmap map, Charsmap::parse(*bytes));
  out.add(norm::Compiled{std::move(map), true});
  return Ok{};
}

Status read_byte_level(const json::object& object, PreTokenizer& out) {
  VT_TRY(bool prefix, json_bool(object, "add_prefix_space", "pre_tokenizer", true));
  VT_TRY(bool use_regex, json_bool(object, "use_regex", "pre_tokenizer", true));
  if (prefix) out.add_prefix_space();
  if (use_regex) return out.add_regex(kGpt2Pattern, SplitBehavior::kIsolated, false);
  return Ok{};
}

Status read_split(const json::object& object, PreTokenizer& out) {
  VT_TRY(JsonPattern pattern, json_pattern(object, "pre_tokenizer"));
  VT_TRY(SplitBehavior behavior, split_behavior(object, "Isolated"));
  VT_TRY(bool invert, json_bool(object, "invert", "pre_tokenizer", false));
  if (pattern.regex) return out.add_regex(pattern.text, behavior, invert);
  out.add_literal(std::move(pattern.text), behavior, invert);
  return Ok{};
}

Status read_metaspace(const json::object& object, PreTokenizer& out) {
  VT_TRY(std::string replacement, one_character(object, "replacement", "pre_tokenizer"));
  VT_TRY(PrependScheme scheme, prepend_scheme(object, "pre_tokenizer"));
  VT_TRY(bool split, json_bool(object, "split", "pre_tokenizer", true));
  out.add_metaspace(std::move(replacement), scheme, split);
  return Ok{};
}

Status read_simple_pre_tokenizer(const std::string& type, const json::object& object,
                                 PreTokenizer& out) {
  if (type == "Digits") {
    VT_TRY(bool each, json_bool(object, "individual_digits", "pre_tokenizer", false));
    out.add_scanner(Scanner::each_of(category_set(category_mask("N"))),
                    each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false);
  } else if (type == "Punctuation") {
    VT_TRY(SplitBehavior behavior, split_behavior(object, "Isolated"));
    out.add_scanner(Scanner::each_of(punctuation_set()), behavior, false);
  } else if (type == "Whitespace") {
    return out.add_regex(R"(\w+|[^\w\s]+)", SplitBehavior::kRemoved, true);
  } else if (type == "WhitespaceSplit") {
    out.add_scanner(Scanner::each_of(space_set()), SplitBehavior::kRemoved, false);
  } else if (type == "BertPreTokenizer") {
    out.add_scanner(Scanner::each_of(space_set()), SplitBehavior::kRemoved, false);
    out.add_scanner(Scanner::each_of(punctuation_set()), SplitBehavior::kIsolated, false);
  } else if (type == "CharDelimiterSplit") {
    VT_TRY(std::string delimiter, one_character(object, "delimiter", "pre_tokenizer"));
    out.add_literal(std::move(delimiter), SplitBehavior::kRemoved, false);
  } else if (type == "FixedLength") {
    VT_TRY(std::int64_t length, json_int(object, "length", "pre_tokenizer", 5));
    if (length < 1 || length > 1'000'000'000)
      return make_error(ErrorCode::kMalformed,
                        "tokenizer.json: pre_tokenizer.length is {}; it must be at least 1",
                        length);
    out.add_fixed_length(static_cast<std::uint32_t>(length));
  } else {
    return unsupported("pre_tokenizer", type);
  }
  return Ok{};
}

Status read_decoder_replace(const json::object& object, TokenDecoder& out) {
  VT_TRY(JsonPattern pattern, json_pattern(object, "decoder"));
  VT_TRY(std::string content, json_string(object, "content", "decoder"));
  if (!pattern.regex) {
    out.add(dec::Replace{std::move(pattern.text), std::move(content)});
    return Ok{};
  }
  VT_TRY(Regex regex, Regex::compile(pattern.text));
  out.add(dec::ReplaceRegex{std::move(regex), std::move(content)});
  return Ok{};
}

Status read_strip(const json::object& object, TokenDecoder& out) {
  VT_TRY(std::string content, one_character(object, "content", "decoder"));
  VT_TRY(std::int64_t start, json_int(object, "start", "decoder", 0));
  VT_TRY(std::int64_t stop, json_int(object, "stop", "decoder", 0));
  if (start < 0 || stop < 0)
    return make_error(ErrorCode::kMalformed,
                      "tokenizer.json: decoder.start is {} and stop {}; they must not be negative",
                      start, stop);
  out.add(dec::Strip{std::move(content), static_cast<std::size_t>(start),
                     static_cast<std::size_t>(stop)});
  return Ok{};
}

}  // namespace

Status read_normalizer(const json::object& object, Normalizer& out) {
  VT_RETURN_IF_ERROR(check_steps(out.steps(), "normalizer"));
  VT_TRY(std::string type, json_string(object, "type", "normalizer"));
  if (type == "Sequence")
    return read_sequence(object, "normalizers", "normalizer",
                         [&](const json::object& item) { return read_normalizer(item, out); });
  if (type == "NFC") {
    out.add(norm::Form{UnicodeForm::kNfc});
  } else if (type == "NFD") {
    out.add(norm::Form{UnicodeForm::kNfd});
  } else if (type == "NFKC") {
    out.add(norm::Form{UnicodeForm::kNfkc});
  } else if (type == "NFKD") {
    out.add(norm::Form{UnicodeForm::kNfkd});
  } else if (type == "Prepend") {
    VT_TRY(std::string text, json_string(object, "prepend", "normalizer"));
    out.add(norm::Prepend{std::move(text)});
  } else if (type == "Replace") {
    return read_replace(object, out);
  } else if (type == "Lowercase") {
    out.add(norm::Lowercase{});
  } else if (type == "Strip") {
    VT_TRY(bool left, json_bool(object, "strip_left", "normalizer", true));
    VT_TRY(bool right, json_bool(object, "strip_right", "normalizer", true));
    out.add(norm::Strip{left, right});
  } else if (type == "StripAccents") {
    out.add(norm::StripAccents{});
  } else if (type == "BertNormalizer") {
    return read_bert(object, out);
  } else if (type == "Precompiled") {
    return read_precompiled(object, out);
  } else if (type == "ByteLevel") {
    out.add(norm::ByteLevel{});
  } else if (type == "Nmt") {
    out.add(norm::Nmt{});
  } else {
    return unsupported("normalizer", type);
  }
  return Ok{};
}

Status read_pre_tokenizer(const json::object& object, PreTokenizer& out, bool& byte_level) {
  VT_RETURN_IF_ERROR(check_steps(out.steps(), "pre_tokenizer"));
  Result<std::string> type = json_string(object, "type", "pre_tokenizer");
  if (!type.ok()) return type.error();
  if (*type == "Sequence")
    return read_sequence(object, "pretokenizers", "pre_tokenizer", [&](const json::object& item) {
      return read_pre_tokenizer(item, out, byte_level);
    });
  // Another step follows the byte-level one, so that one cannot be left to the model.
  if (std::exchange(byte_level, false)) out.add_byte_level();
  if (*type == "ByteLevel") {
    byte_level = true;
    return read_byte_level(object, out);
  }
  if (*type == "Split") return read_split(object, out);
  if (*type == "Metaspace") return read_metaspace(object, out);
  return read_simple_pre_tokenizer(*type, object, out);
}

Status read_decoder(const json::object& object, TokenDecoder& out) {
  VT_RETURN_IF_ERROR(check_steps(out.steps().size(), "decoder"));
  VT_TRY(std::string type, json_string(object, "type", "decoder"));
  if (type == "Sequence")
    return read_sequence(object, "decoders", "decoder",
                         [&](const json::object& item) { return read_decoder(item, out); });
  if (type == "ByteLevel") {
    out.add(dec::ByteLevel{});
  } else if (type == "Replace") {
    return read_decoder_replace(object, out);
  } else if (type == "ByteFallback") {
    out.add(dec::ByteFallback{});
  } else if (type == "Fuse") {
    out.add(dec::Fuse{});
  } else if (type == "Strip") {
    return read_strip(object, out);
  } else if (type == "Metaspace") {
    VT_TRY(std::string replacement, one_character(object, "replacement", "decoder"));
    VT_TRY(PrependScheme scheme, prepend_scheme(object, "decoder"));
    out.add(dec::Metaspace{std::move(replacement), scheme != PrependScheme::kNever});
  } else if (type == "WordPiece") {
    VT_TRY(std::string prefix, json_string(object, "prefix", "decoder", "##"));
    VT_TRY(bool cleanup, json_bool(object, "cleanup", "decoder", true));
    out.add(dec::WordPiece{std::move(prefix), cleanup});
  } else if (type == "BPEDecoder") {
    VT_TRY(std::string suffix, json_string(object, "suffix", "decoder", "</w>"));
    out.add(dec::WordSuffix{std::move(suffix)});
  } else {
    return unsupported("decoder", type);
  }
  return Ok{};
}

}  // namespace vitrine
