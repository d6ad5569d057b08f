#include "verify/answer.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vitrine::verify {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// Where two lists are not the same; none: nowhere.
std::optional<std::size_t> first_other(const std::vector<float>& a, const std::vector<float>& b) {
  const std::size_t n = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i)
    if (bits(a[i]) != bits(b[i])) return i;
  return a.size() == b.size() ? std::nullopt : std::optional(n);
}

std::string shown(const std::vector<float>& values, std::size_t at) {
  if (at >= values.size()) return "missing";
  return fmt::format("{:.9g} (bits {:08x})", values[at], bits(values[at]));
}

std::optional<std::string> compare(const char* what, const std::vector<float>& expected,
                                   const std::vector<float>& got) {
  const auto at = first_other(expected, got);
  if (!at) return std::nullopt;
  return fmt::format("{} {}: found {}, alone {}", what, *at, shown(got, *at), shown(expected, *at));
}

std::optional<std::string> compare_tokens(const Answer& expected, const Answer& got) {
  const auto& a = expected.tokens;
  const auto& b = got.tokens;
  const auto at = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  if (at == a.size() && at == b.size()) return std::nullopt;
  const auto name = [&](const std::vector<std::int32_t>& ids) {
    return at < ids.size() ? std::to_string(ids[at]) : std::string("the end");
  };
  return fmt::format("token {}: found {}, alone {}", at, name(b), name(a));
}

std::optional<std::string> compare_top(const Answer& expected, const Answer& got) {
  const auto same = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.token == b.token && bits(a.logprob) == bits(b.logprob);
  };
  if (std::equal(expected.top.begin(), expected.top.end(), got.top.begin(), got.top.end(), same))
    return std::nullopt;
  return "the best tokens are not the same";
}

std::optional<std::string> compare_end(const Answer& a, const Answer& b) {
  if (a.reason != b.reason)
    return fmt::format("the end: found {}, alone {}", finish_reason_name(b.reason),
                       finish_reason_name(a.reason));
  if (a.stop_token != b.stop_token)
    return fmt::format("the end token: found {}, alone {}", b.stop_token, a.stop_token);
  if (a.error != b.error) return fmt::format("the error: found '{}', alone '{}'", b.error, a.error);
  if (a.prompt_tokens != b.prompt_tokens || a.completion_tokens != b.completion_tokens)
    return fmt::format("the counts of tokens: found {} and {}, alone {} and {}", b.prompt_tokens,
                       b.completion_tokens, a.prompt_tokens, a.completion_tokens);
  return std::nullopt;
}

std::vector<double> softmax(const std::vector<float>& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> out;
  double sum = 0;
  for (const float x : logits) sum += out.emplace_back(std::exp(x - max));
  for (double& p : out) p /= sum;
  return out;
}

double total_variation(const std::vector<float>& a, const std::vector<float>& b) {
  const std::vector<double> p = softmax(a), q = softmax(b);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::fabs(p[i] - q[i]);
  return sum / 2;
}

}  // namespace

Answer answer_of(TokenStream& stream) {
  Answer out;
  std::vector<TokenEvent> events;
  stream.read(events, out.top);
  for (const TokenEvent& e : events) {
    out.tokens.push_back(e.token);
    out.logprobs.push_back(e.logprob);
    out.shares.push_back(e.p);
  }
  const Finish& end = stream.wait();
  out.prompt_logprobs = stream.prompt_logprobs().logprobs;
  out.logits = stream.logits();
  out.reason = end.reason, out.stop_token = end.stop_token, out.error = end.error;
  out.prompt_tokens = end.account.usage.prompt_tokens;
  out.completion_tokens = end.account.usage.completion_tokens;
  out.account = end.account;
  return out;
}

std::optional<std::string> difference(const Answer& expected, const Answer& got) {
  for (const auto& [position, row] : expected.logits) {
    const auto found = got.logits.find(position);
    if (found == got.logits.end()) return fmt::format("logits of position {}: missing", position);
    if (auto d = compare(fmt::format("logits of position {}, token", position).c_str(), row,
                         found->second))
      return d;
  }
  if (auto d =
          compare("log probability of prompt token", expected.prompt_logprobs, got.prompt_logprobs))
    return d;
  if (auto d = compare_tokens(expected, got)) return d;
  if (auto d = compare("log probability of token", expected.logprobs, got.logprobs)) return d;
  if (auto d = compare("what a sampler learns of token", expected.shares, got.shares)) return d;
  if (auto d = compare_top(expected, got)) return d;
  return compare_end(expected, got);
}

std::optional<std::string> disagreement(const Answer& expected, const Answer& got, double most) {
  if (got.reason == FinishReason::kError) return fmt::format("an error: '{}'", got.error);
  for (const auto& [position, row] : expected.logits) {
    const auto found = got.logits.find(position);
    if (found == got.logits.end() || found->second.size() != row.size())
      return fmt::format("logits of position {}: missing", position);
    const double distance = total_variation(row, found->second);
    if (!(distance <= most))
      return fmt::format("position {}: the distribution differs by {:.4f}, allowed {}", position,
                         distance, most);
  }
  const auto far = [&](float a, float b) {
    return !(std::fabs(std::exp(a) - std::exp(b)) <= most);
  };
  const std::size_t n = std::min(expected.tokens.size(), got.tokens.size());
  for (std::size_t i = 0; i < n && expected.tokens[i] == got.tokens[i]; ++i)
    if (far(expected.logprobs[i], got.logprobs[i]))
      return fmt::format(
          "token {}: a probability of {:.4f}, alone {:.4f}, allowed are {} more or less", i,
          std::exp(got.logprobs[i]), std::exp(expected.logprobs[i]), most);
  return std::nullopt;
}

double surprise(const std::vector<float>& logits, const std::map<std::int32_t, int>& counts) {
  constexpr double kLeast = 5;
  struct Bin {
    double expected = 0, seen = 0;
  };
  double draws = 0;
  for (const auto& [id, n] : counts) draws += n;
  std::vector<Bin> bins;
  Bin rest;
  const std::vector<double> p = softmax(logits);
  for (std::size_t id = 0; id < p.size(); ++id) {
    const auto found = counts.find(static_cast<std::int32_t>(id));
    const Bin bin{p[id] * draws, found == counts.end() ? 0.0 : found->second};
    if (bin.expected >= kLeast)
      bins.push_back(bin);
    else
      rest.expected += bin.expected, rest.seen += bin.seen;
  }
  const auto less = [](const Bin& a, const Bin& b) { return a.expected < b.expected; };
  const auto least = std::min_element(bins.begin(), bins.end(), less);
  // Few tokens that are hardly ever drawn count with others, unless they come far too often.
  const bool often = rest.seen > rest.expected + kLeast * (1 + std::sqrt(rest.expected));
  if (rest.expected >= kLeast || often || least == bins.end())
    bins.push_back(rest);
  else
    least->expected += rest.expected, least->seen += rest.seen;
  if (bins.size() < 2) return 0;  // one token has nearly all
  double chi = 0;
  for (const Bin& b : bins)
    chi += (b.seen - b.expected) * (b.seen - b.expected) / std::max(b.expected, 1e-6);
  const auto freedom = static_cast<double>(bins.size() - 1);
  const double part = 2 / (9 * freedom);
  return (std::cbrt(chi / freedom) - (1 - part)) / std::sqrt(part);
}

}  // namespace vitrine::verify
