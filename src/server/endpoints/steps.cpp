// GET /api/steps?from=N&limit=N: the last steps of the engine, each with its entries; /api/steps/N: one of
// them. For operators: a step tells about everybody who had rows in it.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/api.h"
#include "server/request/json_fields.h"
#include "server/request/query.h"

namespace vitrine {
namespace {

constexpr const char* kPath = "/api/steps";
constexpr std::uint64_t kMostSteps = kKeptRecords, kUsualSteps = 64;

Reply one_step(const Engine& engine, std::string_view name) {
  auto wanted = whole_number(name);
  if (!wanted)
    return bad_field("step",
                     fmt::format("step: found {}, must be a whole number from 0 on",
                                 describe(json::value(name))),
                     "invalid_value");
  auto found = engine.steps_since(*wanted, 1);
  if (!found.empty() && found[0].step == *wanted) return to_json(whole_step_json(found[0]));
  return ApiError{404, "invalid_request_error",
                  fmt::format("found no step {} among the last {}", *wanted, kMostSteps), "step",
                  "not_found"};
}

Reply steps(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  if (http.path != kPath) return one_step(*api.engine, http.argument);
  std::uint64_t from = 0, limit = kUsualSteps;
  if (auto error = read_query(
          http.query, {whole_number("from", from), whole_number("limit", limit, 1, kMostSteps)}))
    return *error;
  json::array list;
  std::uint64_t next = from;
  for (const StepRecord& r : api.engine->steps_since(from, limit)) {
    list.push_back(whole_step_json(r));
    next = r.step + 1;
  }
  return to_json(json::object{{"next", next}, {"steps", std::move(list)}});
}

}  // namespace

extern const Endpoint kEndpoint_steps;
const Endpoint kEndpoint_steps{"GET", {kPath, "/api/steps/*"}, reply_from_worker<steps>};

}  // namespace vitrine
