#include "server/answer/text_json.h"

#include <cmath>

#include "base/utf8.h"
#include "server/request/call.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

const char* kind_name(SaidKind kind) {
  static constexpr const char* kNames[] = {"output", "reasoning", "tool"};
  return kNames[static_cast<int>(kind)];
}

json::value number_or_null(std::uint64_t id) { return id == 0 ? json::value() : json::value(id); }

}  // namespace

std::string token_text(const Tokenizer* tokenizer, std::int32_t id) {
  return tokenizer == nullptr ? std::string() : utf8_sanitize(tokenizer->piece(id));
}

json::array token_bytes(const Tokenizer* tokenizer, std::int32_t id) {
  json::array out;
  if (tokenizer == nullptr) return out;
  for (unsigned char c : tokenizer->piece(id)) out.emplace_back(static_cast<int>(c));
  return out;
}

json::object sampling_json(const SamplingParams& params) {
  json::object out;
  for (const Param* p : all_params()) {
    if (p->integer)
      out[p->name] = static_cast<std::int64_t>(params.get(p->name));
    else
      out[p->name] = params.get(p->name);
  }
  json::array order;
  for (const SamplerDef* def : params.order()) order.emplace_back(def->name);
  out["samplers"] = std::move(order);
  json::object bias;
  for (const LogitBias& entry : params.logit_bias().entries())
    bias[std::to_string(entry.id)] = entry.bias;
  out["logit_bias"] = std::move(bias);
  const TokenLists lists = params.lists();
  if (lists.allowed)
    out["allowed_token_ids"] = json::array(lists.allowed->begin(), lists.allowed->end());
  if (lists.bad_words) {
    json::array words;
    for (const auto& word : *lists.bad_words)
      words.push_back(json::array(word.begin(), word.end()));
    out["bad_words"] = std::move(words);
  }
  return out;
}

json::object text_json(const Text& text, std::span<const std::uint64_t> forks, bool all) {
  const Request& r = text.call->request;
  json::object out{
      {"label", text.label},
      {"choice", text.index},
      {"state", text.ended ? "ended" : "running"},
      {"finish_reason", text.ended ? json::value(finish_reason_name(text.reason)) : json::value()},
      {"prompt_tokens", text.prompt->size()},
      {"output_tokens", text.output.size()},
      {"begun", text.begun},
      {"stop_token", text.stop_token < 0 ? json::value() : json::value(text.stop_token)},
      {"seed", text.seed},
      {"draw_choice", text.choice},
      {"max_tokens", r.max_tokens ? json::value(*r.max_tokens) : json::value()},
      {"min_tokens", r.min_tokens},
      {"ignore_eos", r.ignore_eos},
      {"constrained", r.constraint != nullptr},
      {"reasoning_budget", r.reasoning ? json::value(r.reasoning->tokens) : json::value()},
      {"chat", text.call->chat.has_value()},
      {"sampling", sampling_json(r.sampling)}};
  if (all) {
    out["id"] = text.id;
    out["parent"] = number_or_null(text.parent);
    out["forks"] = json::array(forks.begin(), forks.end());
  }
  return out;
}

json::object text_token_json(const Text& text, const Tokenizer* tokenizer, int position) {
  const auto at = static_cast<std::size_t>(position);
  const std::int32_t id = text.token(position);
  json::object out{{"id", id},
                   {"text", token_text(tokenizer, id)},
                   {"bytes", token_bytes(tokenizer, id)},
                   {"special", tokenizer != nullptr && tokenizer->is_special(id)},
                   {"message", nullptr}};
  if (at < text.prompt->size()) {
    out["kind"] = position < text.cached_tokens ? "cached" : "input";
    return out;
  }
  const std::size_t i = at - text.prompt->size();
  out["kind"] = kind_name(text.kinds[i]);
  if (static_cast<int>(i) < text.begun) return out;  // said by its parent
  out["at_ns"] = text.at_ns[i];
  if (text.call->request.logprobs && std::isfinite(text.logprobs[i]))
    out["logprob"] = text.logprobs[i];
  return out;
}

}  // namespace vitrine
