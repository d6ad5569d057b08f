// The requests of a load. Request i is a function of the seed and i alone, so two servers, or two
// policies of one server, get the same load whatever their speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace vitrine::load {

// A length in tokens: lognormal with this mean and coefficient of variation, rounded, within
// [1, max]. cv 0: always the mean.
struct LengthSpec {
  double mean = 64;
  double cv = 0;
  int max = 0;  // 0: eight times the mean

  int limit() const;
};

struct LoadSpec {
  double rate = 0;        // Poisson arrivals a second, open loop; 0: closed loop
  int concurrency = 16;   // requests in flight, closed loop
  int requests = 64;      // 0: until the duration is over
  double duration_s = 0;  // no new request after this; 0: no such limit
  int warmup = 0;         // requests before the measured ones, in closed loop
  LengthSpec prompt{128, 0, 0};
  LengthSpec output{64, 1, 0};
  double shared_prefix = 0;  // of each prompt: the share that is common to all
  std::uint64_t seed = 1;
  int vocab = 0;  // prompt ids are below it
  int max_connections = 2000;
  double timeout_s = 600;  // of one request
  int slow_readers = 0;    // further clients, which read a byte a second
  int slow_tokens = 1024;  // length of the answers they ask for
};
json::object to_json(const LoadSpec& spec);

// Random numbers of one purpose of one request.
class Random {
 public:
  Random(std::uint64_t seed, std::int64_t index, std::uint64_t purpose);
  std::uint64_t bits();
  double uniform();  // in (0, 1)
  double normal();
  double exponential();  // of mean 1

 private:
  std::uint64_t state_;
};

int draw_length(const LengthSpec& spec, Random& random);

struct PlannedRequest {
  double gap_s = 0;  // after the arrival before; open loop only
  int output_tokens = 0;
  std::vector<std::int32_t> prompt;
  int logprobs = 0;  // of so many tokens at each position
};
// Warm-up requests have negative indices.
PlannedRequest plan_request(const LoadSpec& spec, std::int64_t index);

// The body of POST /v1/completions. `model` may be empty.
std::string request_body(const PlannedRequest& request, const std::string& model);

}  // namespace vitrine::load
