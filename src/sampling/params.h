// Sampling settings of a request, of the flags or of a model's generation_config, and their
// combination. Values are checked when they are set; a SamplingParams is valid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sampling/sampler.h"
#include "sampling/token_lists.h"

namespace vitrine {

class SamplingParams {
 public:
  // `name` is a Param's name; refuses unknown names, NaN, infinities, values out of range, and
  // fractions where a whole number is asked for.
  Status set(std::string_view name, double value);
  // The value set, else the built-in one. The name must be a Param's (VT_CHECK).
  double get(std::string_view name) const;

  Status set_logit_bias(std::vector<LogitBias> entries);
  const BiasTable& logit_bias() const;
  // Only these may be drawn; empty: all. Refuses negative ids and more than TokenLists::kMaxAllowed.
  Status set_allowed_ids(std::vector<std::int32_t> ids);
  // Each as its tokens. Refuses more than kMaxWords, words without tokens, longer ones than
  // kMaxWordTokens, and negative ids.
  Status set_bad_words(std::vector<std::vector<std::int32_t>> words);
  // Tokens at which dry's copies end.
  void set_breakers(std::vector<std::int32_t> ids);
  bool has_breakers() const { return lists_.breakers != nullptr; }
  // The texts of the model's tokens, which infill looks at.
  void set_texts(std::shared_ptr<const TokenTexts> texts) { lists_.texts = std::move(texts); }
  bool wants_texts() const { return get("infill") > 0; }
  TokenLists lists() const;
  std::size_t bytes() const;  // of its lists, about

  // Names of transforms (SamplerDef::name) in the order to run them. Refuses unknown and repeated
  // names. What the list leaves out: see sampler.h.
  Status set_order(std::span<const std::string> names);
  // The order to run, complete: as set, else the default one.
  std::vector<const SamplerDef*> order() const;

  void set_seed(std::uint64_t seed) { seed_ = seed; }
  std::optional<std::uint64_t> seed() const { return seed_; }

  // The check that needs a model: ids are below `vocab`, and texts are there where they are wanted.
  Status check_vocab(std::size_t vocab) const;

  // Beam search neither draws nor cuts: refuses values that are set for samplers that do. A temperature of 0 is
  // what it does anyway.
  Status check_beams() const;
  // Only what beam search has.
  SamplingParams for_beams() const;

  // Takes from `lower` what is not set here.
  void fill_from(const SamplingParams& lower);

 private:
  static constexpr std::size_t kMaxParams = 32;

  std::array<std::optional<double>, kMaxParams> values_;  // by index in all_params()
  std::optional<BiasTable> bias_;
  TokenLists lists_;  // but for the bias
  std::optional<std::vector<const SamplerDef*>> order_;
  std::optional<std::uint64_t> seed_;
};

// Layers from the strongest to the weakest: resolve({&request, &flags, &generation_config}). A
// value that no layer sets keeps its built-in default.
SamplingParams resolve(std::initializer_list<const SamplingParams*> layers);

// Every parameter of every transform, in default order.
std::span<const Param* const> all_params();

}  // namespace vitrine
