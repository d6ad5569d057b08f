// What came of a request, to be compared to the bit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"

namespace vitrine::verify {

struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs, shares;  // TokenEvent::logprob, p
  std::vector<TokenLogprob> top;
  std::vector<float> prompt_logprobs;
  std::map<int, std::vector<float>> logits;  // by position of the prompt
  FinishReason reason = FinishReason::kStop;
  std::int32_t stop_token = -1;
  std::string error;
  int prompt_tokens = 0, completion_tokens = 0;
  Account account;  // not compared: what happened on the way
};

// Of a stream that has finished.
Answer answer_of(TokenStream& stream);

// The first thing in which `got` is not `expected`, in words; none when they are equal to the bit.
std::optional<std::string> difference(const Answer& expected, const Answer& got);

// For backends that promise no bits: the first row of logits whose distribution is further from the expected one than
// `most` (total variation), or log probability of a token after the same tokens whose probability is.
std::optional<std::string> disagreement(const Answer& expected, const Answer& got, double most);

// Whether `counts`, by token, may have been drawn from the softmax of `logits`: how many standard deviations chi-square
// is above what it is on average (Wilson and Hilferty's approximation). Tokens that are expected less than five times
// count as one.
double surprise(const std::vector<float>& logits, const std::map<std::int32_t, int>& counts);

}  // namespace vitrine::verify
