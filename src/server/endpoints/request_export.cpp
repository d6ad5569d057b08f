// GET /api/requests/ID/export?format=perfetto|otlp&text=1: a request for other programs.
#include "server/answer/request_export.h"

#include <map>

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

// Bytes of JSON values and text: for a row of a step, a part of a life, a token.
constexpr std::size_t kRowBytes = 2048, kPartBytes = 1024, kTokenBytes = 12;
constexpr std::size_t kMostRows = 32 << 10;  // of steps, in a trace for Perfetto

std::size_t tokens_of(const std::vector<Text>& texts) {
  std::size_t out = 0;
  for (const Text& text : texts) out += static_cast<std::size_t>(text.length());
  return out;
}

// Choices have the same prompt: it becomes text once.
void add_texts(const Tokenizer& tokenizer, const std::vector<Text>& texts,
               std::vector<ExportedChoice>& choices) {
  std::map<const void*, std::shared_ptr<const std::string>> inputs;
  std::map<std::uint64_t, const Text*> kept;
  for (const Text& text : texts) kept[text.id] = &text;
  for (ExportedChoice& choice : choices) {
    const auto found = kept.find(choice.found->account.id);
    if (found == kept.end()) continue;
    const Text& text = *found->second;
    auto& input = inputs[text.prompt.get()];
    if (!input) input = std::make_shared<const std::string>(tokenizer.decode(*text.prompt, false));
    choice.input = input;
    choice.output = tokenizer.decode(text.output, false);
  }
}

Reply export_request(const Api& api, Exchange& exchange) {
  const HttpRequest& http = exchange.request();
  Query query;
  if (auto error = read_query(http.query, query)) return *error;
  const bool perfetto = *query.format == Format::kPerfetto;
  const FoundRequests found = find_requests(api, http.argument, http);
  if (found.list.empty()) return no_such_request(http.argument);
  std::vector<Text> texts;
  if (query.text) {
    for (const Texts::Kept& kept : api.texts.find(http.argument, http))
      if (std::optional<Text> text = api.texts.get(kept.id)) texts.push_back(std::move(*text));
    if (texts.empty()) return not_kept(api, http.argument);
    if (api.tokenizer == nullptr) return no_tokenizer();
  }
  std::size_t bytes = bytes_of(found) + tokens_of(texts) * kTokenBytes;
  for (const FoundRequest& each : found.list) bytes += (each.life.size() + 1) * kPartBytes;
  if (perfetto) bytes += bytes_of_steps(found) + std::min(rows_of(found), kMostRows) * kRowBytes;
  if (!exchange.hold(static_cast<std::int64_t>(bytes))) return too_many_answers_reply();
  FoundSteps steps;
  if (perfetto) steps = steps_of(*api.engine, found, kMostRows);
  std::vector<ExportedChoice> choices;
  for (const FoundRequest& each : found.list) {
    choices.push_back({&each, {}, {}, {}});
    if (perfetto) choices.back().steps = steps.of[choices.size() - 1];
  }
  if (query.text) add_texts(*api.tokenizer, texts, choices);
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
    "GET", {"/api/requests/*/export"}, reply_with_room<export_request>};

}  // namespace vitrine
