#include "sampling/params.h"
#include "base/utf8.h"

#include <algorithm>
#include <cmath>

namespace vitrine {
namespace {

template <typename Items>
std::string name_list(const Items& items) {
  std::string out;
  for (const auto* item : items) out += (out.empty() ? "" : ", ") + std::string(item->name);
  return out;
}

std::optional<std::size_t> param_index(std::string_view name) {
  const auto params = all_params();
  for (std::size_t i = 0; i < params.size(); ++i)
    if (name == params[i]->name) return i;
  return std::nullopt;
}

std::string allowed(const Param& p) {
  const char* kind = p.integer ? "whole numbers " : "";
  if (p.min_excluded) return fmt::format("{}above {} and up to {}", kind, p.min, p.max);
  return fmt::format("{}{} to {}", kind, p.min, p.max);
}

Status check_value(const Param& p, double value) {
  const bool inside =
      std::isfinite(value) && value <= p.max && (p.min_excluded ? value > p.min : value >= p.min);
  if (!inside || (p.integer && value != std::floor(value)))
    return make_error(ErrorCode::kInvalid, "{}: found {}, allowed {}", p.name, value, allowed(p));
  return Ok{};
}

Status not_negative(const char* name, std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids)
    if (id < 0)
      return make_error(ErrorCode::kInvalid, "{}: found token {}, allowed 0 and up", name, id);
  return Ok{};
}

TokenLists::Shared<std::int32_t> ascending(std::vector<std::int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
}

}  // namespace

std::span<const SamplerDef* const> ordered_samplers() {
  static const std::vector<const SamplerDef*> kOrdered = [] {
    const auto all = all_samplers();
    std::vector<const SamplerDef*> defs(all.begin(), all.end());
    std::sort(defs.begin(), defs.end(),
              [](const SamplerDef* a, const SamplerDef* b) { return a->order < b->order; });
    return defs;
  }();
  return kOrdered;
}

const SamplerDef* find_sampler(std::string_view name) {
  for (const SamplerDef* def : all_samplers())
    if (name == def->name) return def;
  return nullptr;
}

std::span<const Param* const> all_params() {
  static const std::vector<const Param*> kParams = [] {
    std::vector<const Param*> params;
    for (const SamplerDef* def : ordered_samplers())
      for (const Param& p : def->params) params.push_back(&p);
    return params;
  }();
  return kParams;
}

Result<BiasTable> BiasTable::make(std::vector<LogitBias> entries) {
  if (entries.size() > kMaxEntries)
    return make_error(ErrorCode::kTooLarge, "logit_bias: found {} entries, allowed up to {}",
                      entries.size(), kMaxEntries);
  std::sort(entries.begin(), entries.end(),
            [](const LogitBias& a, const LogitBias& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LogitBias& e = entries[i];
    if (e.id < 0)
      return make_error(ErrorCode::kInvalid, "logit_bias: found token {}, allowed 0 and up", e.id);
    if (i > 0 && entries[i - 1].id == e.id)
      return make_error(ErrorCode::kInvalid, "logit_bias: found token {} twice, allowed once",
                        e.id);
    if (!(std::fabs(e.bias) <= kMaxBias))
      return make_error(ErrorCode::kInvalid, "logit_bias: found {} for token {}, allowed {} to {}",
                        e.bias, e.id, -kMaxBias, kMaxBias);
  }
  BiasTable table;
  table.entries_ = std::move(entries);
  return table;
}

const LogitBias* BiasTable::find(std::int32_t id) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), id,
                                   [](const LogitBias& e, std::int32_t x) { return e.id < x; });
  return at != entries_.end() && at->id == id ? &*at : nullptr;
}

Status SamplingParams::set(std::string_view name, double value) {
  VT_CHECK(all_params().size() <= kMaxParams, "{} parameters", all_params().size());
  const auto index = param_index(name);
  if (!index)
    return make_error(ErrorCode::kInvalid, "unknown sampling parameter '{}', known: {}",
                      shortened(name), name_list(all_params()));
  VT_RETURN_IF_ERROR(check_value(*all_params()[*index], value));
  values_[*index] = value;
  return Ok{};
}

double SamplingParams::get(std::string_view name) const {
  const auto index = param_index(name);
  VT_CHECK(index.has_value(), "no parameter '{}'", name);
  return values_[*index].value_or(all_params()[*index]->neutral);
}

Status SamplingParams::set_logit_bias(std::vector<LogitBias> entries) {
  VT_TRY(bias_, BiasTable::make(std::move(entries)));
  return Ok{};
}

const BiasTable& SamplingParams::logit_bias() const {
  static const BiasTable kNone;
  return bias_ ? *bias_ : kNone;
}

Status SamplingParams::set_allowed_ids(std::vector<std::int32_t> ids) {
  if (ids.size() > TokenLists::kMaxAllowed)
    return make_error(ErrorCode::kTooLarge, "allowed_token_ids: found {} ids, allowed up to {}",
                      ids.size(), TokenLists::kMaxAllowed);
  VT_RETURN_IF_ERROR(not_negative("allowed_token_ids", ids));
  lists_.allowed = ascending(std::move(ids));
  return Ok{};
}

Status SamplingParams::set_bad_words(std::vector<std::vector<std::int32_t>> words) {
  if (words.size() > TokenLists::kMaxWords)
    return make_error(ErrorCode::kTooLarge, "bad_words: found {} words, allowed up to {}",
                      words.size(), TokenLists::kMaxWords);
  for (const auto& word : words) {
    if (word.empty() || word.size() > TokenLists::kMaxWordTokens)
      return make_error(ErrorCode::kInvalid,
                        "bad_words: found a word of {} tokens, allowed 1 to {}", word.size(),
                        TokenLists::kMaxWordTokens);
    VT_RETURN_IF_ERROR(not_negative("bad_words", word));
  }
  lists_.bad_words =
      std::make_shared<const std::vector<std::vector<std::int32_t>>>(std::move(words));
  return Ok{};
}

void SamplingParams::set_breakers(std::vector<std::int32_t> ids) {
  lists_.breakers = ascending(std::move(ids));
}

TokenLists SamplingParams::lists() const {
  TokenLists out = lists_;
  out.bias = logit_bias();
  return out;
}

std::size_t SamplingParams::bytes() const {
  std::size_t sum = logit_bias().entries().size() * sizeof(LogitBias);
  const auto add = [&](const std::vector<std::int32_t>& ids) {
    sum += sizeof(std::vector<std::int32_t>) + ids.capacity() * sizeof(std::int32_t);
  };
  if (lists_.allowed) add(*lists_.allowed);
  if (lists_.breakers) add(*lists_.breakers);
  if (lists_.bad_words)
    for (const auto& word : *lists_.bad_words) add(word);
  return sum;
}

Status SamplingParams::set_order(std::span<const std::string> names) {
  std::vector<const SamplerDef*> order;
  for (const std::string& name : names) {
    const SamplerDef* def = find_sampler(name);
    if (def == nullptr)
      return make_error(ErrorCode::kInvalid, "samplers: unknown name '{}', known: {}",
                        shortened(name), name_list(ordered_samplers()));
    if (std::find(order.begin(), order.end(), def) != order.end())
      return make_error(ErrorCode::kInvalid, "samplers: found '{}' twice, allowed once; known: {}",
                        name, name_list(ordered_samplers()));
    order.push_back(def);
  }
  order_ = std::move(order);
  return Ok{};
}

std::vector<const SamplerDef*> SamplingParams::order() const {
  const auto ordered = ordered_samplers();
  if (!order_) return {ordered.begin(), ordered.end()};
  // A constraint behind a cut could find only tokens that it forbids.
  std::vector<const SamplerDef*> out;
  for (const SamplerDef* def : ordered)
    if (def->always_runs) out.push_back(def);
  for (const SamplerDef* def : *order_)
    if (!def->always_runs) out.push_back(def);
  return out;
}

Status SamplingParams::check_vocab(std::size_t vocab) const {
  const auto check = [vocab](const char* name, std::int32_t id) -> Status {
    if (static_cast<std::size_t>(id) < vocab) return Ok{};
    return make_error(ErrorCode::kInvalid, "{}: found token {}, allowed 0 to {}", name, id,
                      static_cast<std::int64_t>(vocab) - 1);
  };
  if (wants_texts() && lists_.texts == nullptr)
    return make_error(ErrorCode::kInvalid, "infill: the texts of the model's tokens are not known");
  const auto entries = logit_bias().entries();
  if (!entries.empty()) VT_RETURN_IF_ERROR(check("logit_bias", entries.back().id));
  if (lists_.allowed && !lists_.allowed->empty())
    VT_RETURN_IF_ERROR(check("allowed_token_ids", lists_.allowed->back()));
  if (!lists_.bad_words) return Ok{};
  for (const auto& word : *lists_.bad_words)
    for (const std::int32_t id : word) VT_RETURN_IF_ERROR(check("bad_words", id));
  return Ok{};
}

Status SamplingParams::check_beams() const {
  const auto params = all_params();
  for (const SamplerDef* def : all_samplers())
    for (const Param& p : def->params) {
      const auto at = std::find(params.begin(), params.end(), &p) - params.begin();
      const auto& value = values_[static_cast<std::size_t>(at)];
      if (def->beams || !value || *value == p.neutral) continue;
      if (*value == 0 && std::string_view(p.name) == "temperature") continue;
      return make_error(ErrorCode::kInvalid, "{}: found {}, a beam search allows only {}", p.name,
                        *value, p.neutral);
    }
  return Ok{};
}

SamplingParams SamplingParams::for_beams() const {
  SamplingParams out = *this;
  const auto params = all_params();
  for (const SamplerDef* def : all_samplers())
    for (const Param& p : def->params)
      if (!def->beams)
        out.values_[static_cast<std::size_t>(std::find(params.begin(), params.end(), &p) -
                                             params.begin())]
            .reset();
  return out;
}

void SamplingParams::fill_from(const SamplingParams& lower) {
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (!values_[i]) values_[i] = lower.values_[i];
  if (!bias_) bias_ = lower.bias_;
  if (!lists_.allowed) lists_.allowed = lower.lists_.allowed;
  if (!lists_.breakers) lists_.breakers = lower.lists_.breakers;
  if (!lists_.bad_words) lists_.bad_words = lower.lists_.bad_words;
  if (!lists_.texts) lists_.texts = lower.lists_.texts;
  if (!order_) order_ = lower.order_;
  if (!seed_) seed_ = lower.seed_;
}

SamplingParams resolve(std::initializer_list<const SamplingParams*> layers) {
  SamplingParams out;
  for (const SamplingParams* layer : layers) out.fill_from(*layer);
  return out;
}

}  // namespace vitrine
