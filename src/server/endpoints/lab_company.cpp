// POST /api/lab/company: fills the seats with ordinary requests, and a few more, so that whoever asks next
// waits as on a busy server. Refused while anything else runs. They have no reader: their tokens are drawn
// and dropped, and they end by themselves.
#include <mutex>

#include "engine/engine.h"
#include "server/api.h"
#include "server/http/key_limits.h"
#include "server/request/json_fields.h"
#include "server/request/limits.h"
#include "server/request/prompt_fields.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

constexpr int kMore = 4;  // than there are seats
constexpr std::chrono::seconds kTimeout{30};
constexpr const char* kPrompt = "Tell me a story about a fox that went out to see the world.";

struct Company {
  std::string prompt;
  int n = 0, max_tokens = 0;
};

std::optional<ApiError> read(const Api& api, const HttpRequest& http, Company& out) {
  json::value body;
  if (auto error = parse_body(http.body, body)) return error;
  JsonFields fields(body.get_object());
  const int seats = api.engine->memory().sequences;
  const int most = std::min(api.engine->options().max_queue, kMostCompanyRequests);
  out.prompt = fields.text("prompt", kMostCompanyPrompt).value_or(kPrompt);
  out.n = static_cast<int>(fields.integer("n", 1, most).value_or(std::min(seats + kMore, most)));
  out.max_tokens = static_cast<int>(
      fields.integer("max_tokens", 1, kMostCompanyTokens)
          .value_or(std::min(kMostCompanyTokens / 4, std::max(1, api.context / 4))));
  return fields.close();
}

std::vector<std::int32_t> prompt_of(const Api& api, const Company& company, int i) {
  if (api.tokenizer != nullptr)
    return api.tokenizer->encode(fmt::format("{}. {}", i + 1, company.prompt), {});
  std::vector<std::int32_t> out;
  for (std::size_t k = 0; k < 16; ++k)
    out.push_back(static_cast<std::int32_t>((static_cast<std::size_t>(i) * 31 + k * 17) %
                                            static_cast<std::size_t>(api.vocab)));
  return out;
}

Request one(const Api& api, const HttpRequest& http, const Company& company, int i) {
  Request r;
  read_origin(http, r);
  r.written = nullptr, r.stamps = {};  // the answer to this call is not theirs
  r.label = fmt::format("{}-company-{}", http.id, i + 1);
  // None finds in the cache what another one left, so that each has its prompt to compute.
  const std::string scope = api.scope(http.tenant);
  r.cache_salt = fmt::format("{}:{}{}", scope.size(), scope, r.label);
  r.prompt = prompt_of(api, company, i);
  r.max_tokens = company.max_tokens;
  r.sampling = api.defaults;
  r.sampling.set_seed(static_cast<std::uint64_t>(i) + 1);
  r.ignore_eos = true;
  r.priority = std::max(0, http.rights.min_priority);
  r.timeout = std::min<std::chrono::milliseconds>(kTimeout, api.default_timeout.value_or(kTimeout));
  return r;
}

ApiError busy(std::size_t found) {
  return {409, "invalid_request_error",
          fmt::format("company comes only while nothing else runs: found {} {} that run or wait",
                      found, found == 1 ? "request" : "requests"),
          "", "busy"};
}

Reply company(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  if (!api.lab)
    return ApiError{403, "invalid_request_error", "this server has no lab (--no-lab)", "",
                    "no_lab"};
  if (api.draining) return shutting_down();
  Company asked;
  if (auto error = read(api, http, asked)) return *error;
  std::vector<Request> all;
  std::int64_t tokens = 0;
  for (int i = 0; i < asked.n; ++i) {
    all.push_back(one(api, http, asked, i));
    const auto length = static_cast<int>(all.back().prompt.size()) + asked.max_tokens;
    if (length > api.context)
      return bad_field("prompt",
                       fmt::format("prompt: found {} tokens with max_tokens, allowed up to "
                                   "{}: the context",
                                   length, api.context));
    tokens += length;
  }
  // One company at a time.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!api.engine->idle()) {
    const Snapshot now = api.engine->snapshot();
    return busy(std::max<std::size_t>(1, now.running.size() + now.waiting.size()));
  }
  if (auto over = take_tokens(http, tokens)) return std::move(*over);
  json::array labels;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (Request& r : all) {
    const std::string label = r.label;
    auto stream = api.engine->submit(std::move(r));
    if (!stream.ok()) {
      for (auto& each : streams) each->cancel();
      if (http.use) http.use->settle_tokens(0);
      return refusal(api, stream.error());
    }
    streams.push_back(std::move(*stream));
    labels.emplace_back(label);
  }
  return to_json(json::object{{"requests", std::move(labels)}, {"max_tokens", asked.max_tokens}});
}

}  // namespace

extern const Endpoint kEndpoint_lab_company;
const Endpoint kEndpoint_lab_company{"POST", {"/api/lab/company"}, reply_from_worker<company>};

}  // namespace vitrine
