// GET /api/requests/ID/export?format=perfetto|otlp&text=1: a request for other programs.
#include "server/answer/request_export.h"
#include "engine/engine.h"
#include "server/api.h"
#include "server/request/json_fields.h"
#include "server/request/kept_text.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

enum class Format { kPerfetto, kOtlp };

struct Query {
  std::optional<Format> format;
  bool text = false;
};

ApiError bad_query(std::string name, std::string_view found, std::string_view allowed) {
  return {400, "invalid_request_error",
          fmt::format("{}: found {}, allowed {}", name, describe(json::value(found)), allowed),
          std::move(name), "invalid_value"};
}

std::optional<ApiError> read_query(std::string_view rest, Query& out) {
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (name == "format" && value == "perfetto")
      out.format = Format::kPerfetto;
    else if (name == "format" && value == "otlp")
      out.format = Format::kOtlp;
    else if (name == "format")
      return bad_query("format", value, "perfetto or otlp");
    else if (name == "text" && (value == "0" || value == "1"))
      out.text = value == "1";
    else if (name == "text")
      return bad_query("text", value, "0 or 1");
    else
      return bad_query("query", name, "format and text");
  }
  if (!out.format) return bad_query("format", "", "perfetto or otlp");
  return std::nullopt;
}

// Of the choices that are kept. An error: none is.
std::optional<ApiError> add_texts(const Api& api, const HttpRequest& http,
                                  std::vector<ExportedChoice>& choices) {
  const std::vector<Text> texts = api.texts.find(http.argument, http);
  if (texts.empty()) return not_kept(api, http.argument);
  if (api.tokenizer == nullptr) return no_tokenizer();
  for (const Text& text : texts)
    for (ExportedChoice& choice : choices) {
      if (choice.found->account.id != text.id) continue;
      choice.input = api.tokenizer->decode(*text.prompt, false);
      choice.output = api.tokenizer->decode(text.output, false);
    }
  return std::nullopt;
}

Reply export_request(const Api& api, const HttpRequest& http) {
  Query query;
  if (auto error = read_query(http.query, query)) return *error;
  const FoundRequests found = find_requests(api, http.argument, http);
  if (found.list.empty()) return no_such_request(http.argument);
  std::vector<ExportedChoice> choices;
  for (const FoundRequest& each : found.list)
    choices.push_back({&each, api.engine->steps_of(each.account.id), {}, {}});
  if (query.text)
    if (auto error = add_texts(api, http, choices)) return *error;
  const bool perfetto = *query.format == Format::kPerfetto;
  Reply out(to_json(perfetto ? request_perfetto(choices, found.names)
                             : request_otlp(choices, found.names, api.model_name, api.version)));
  // Labels are letters, digits and ".-_".
  out.headers.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}-{}.json\"",
                                                              found.list.front().account.label,
                                                              perfetto ? "perfetto" : "otlp"));
  return out;
}

}  // namespace

extern const Endpoint kEndpoint_request_export;
const Endpoint kEndpoint_request_export{
    "GET", {"/api/requests/*/export"}, reply_from_worker<export_request>};

}  // namespace vitrine
