// GET /api/steps?from=N&limit=N: the last steps of the engine, each with its entries; /api/steps/N: one of
// them; /api/steps/perfetto: all that are kept, as a trace. For operators: a step tells about everybody who
// had rows in it.
#include <charconv>

#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/answer/perfetto.h"
#include "server/api.h"
#include "server/request/json_fields.h"

namespace vitrine {
namespace {

constexpr const char* kPath = "/api/steps";
constexpr std::uint64_t kMostSteps = kKeptRecords, kUsualSteps = 64;

ApiError bad_number(std::string_view name, std::string_view found, std::string_view allowed) {
  return {400, "invalid_request_error",
          fmt::format("{}: found {}, must be {}", name, describe(json::value(found)), allowed),
          std::string(name), "invalid_value"};
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

Reply one_step(const Engine& engine, std::string_view name) {
  auto wanted = number(name);
  if (!wanted) return bad_number("step", name, "a whole number from 0 on");
  auto found = engine.steps_since(*wanted, 1);
  if (!found.empty() && found[0].step == *wanted) return to_json(whole_step_json(found[0]));
  return ApiError{404, "invalid_request_error",
                  fmt::format("found no step {} among the last {}", *wanted, kMostSteps), "step",
                  "not_found"};
}

Reply trace(const Engine& engine) {
  std::map<std::uint64_t, std::string> names;
  for (const Account& a : engine.accounts()) names[a.id] = a.label;
  const Snapshot now = engine.snapshot();
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list) names[s.account.id] = s.account.label;
  Reply out(to_json(perfetto_json(engine.steps_since(0), names)));
  out.headers.emplace_back("Content-Disposition", "attachment; filename=\"vitrine-steps.json\"");
  return out;
}

Reply steps(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  if (http.argument == "perfetto") return trace(*api.engine);
  if (http.path != kPath) return one_step(*api.engine, http.argument);
  std::uint64_t from = 0, limit = kUsualSteps;
  for (std::string_view rest = http.query; !rest.empty();) {
    std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const std::string_view text = part.substr(std::min(equals + 1, part.size()));
    const auto value = number(text);
    if (name == "from" && value)
      from = *value;
    else if (name == "limit" && value && *value >= 1 && *value <= kMostSteps)
      limit = *value;
    else if (name == "from" || name == "limit")
      return bad_number(name, text,
                        name == "from" ? std::string("a whole number from 0 on")
                                       : fmt::format("1 to {}", kMostSteps));
    else
      return ApiError{400, "invalid_request_error",
                      fmt::format("unknown query parameter {}: from and limit are allowed",
                                  describe(json::value(name))),
                      "query", "unknown_parameter"};
  }
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
