// A request as OTLP/JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Ids are
// hexadecimal, 64-bit numbers are strings. Attributes are those of the conventions for generative AI.
#include <algorithm>
#include <array>
#include <chrono>

#include "base/keyed_hash.h"
#include "base/process_clock.h"
#include "server/answer/request_export.h"
#include "server/answer/trace_context.h"

namespace vitrine {
namespace {

constexpr int kServer = 2, kInternal = 1;  // kinds of spans
constexpr int kStatusError = 2;

json::object attribute(const char* key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}
json::object attribute(const char* key, std::int64_t value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}
json::object list_attribute(const char* key, const std::string& value) {
  json::array values{json::object{{"stringValue", value}}};
  return {{"key", key}, {"value", {{"arrayValue", {{"values", std::move(values)}}}}}};
}

// The time of day at a time of the process. One offset for all, so that a span is always at the same time.
std::string unix_nano(std::int64_t at) {
  static const std::int64_t kOffset = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count() -
                                      process_ns();
  return std::to_string(kOffset + at);
}

// Of this process and request; never zero.
std::uint64_t id_of(const Account& a, std::uint64_t what) {
  SipHash<2, 4> hash(process_secret());
  hash.add(a.id), hash.add(static_cast<std::uint64_t>(a.stamps.received)), hash.add(what);
  return std::max<std::uint64_t>(1, hash.finish());
}
std::string span_id(const Account& a, std::uint64_t what) {
  return fmt::format("{:016x}", id_of(a, what));
}

// An embedding ends without a draw; only chats have a template.
std::string operation_of(const Account& a) {
  if (a.stamps.templated > 0) return "chat";
  const bool drew = a.stamps.first_token > 0;
  const bool embedding = !drew && a.stamps.ended > 0 && a.reason == FinishReason::kStop;
  return embedding ? "embeddings" : "text_completion";
}

json::object span(const std::string& trace, std::string id, std::string name, int kind,
                  std::int64_t start, std::int64_t end) {
  return {{"traceId", trace},
          {"spanId", std::move(id)},
          {"name", std::move(name)},
          {"kind", kind},
          {"startTimeUnixNano", unix_nano(start)},
          {"endTimeUnixNano", unix_nano(end)}};
}

json::array request_attributes(const ExportedChoice& choice, const std::string& model, bool all) {
  const Account& a = choice.found->account;
  json::array out{attribute("gen_ai.operation.name", operation_of(a)),
                  attribute("gen_ai.provider.name", "vitrine"),
                  attribute("gen_ai.request.model", model),
                  attribute("gen_ai.response.model", model),
                  attribute("gen_ai.response.id", a.label),
                  attribute("gen_ai.usage.input_tokens", a.usage.prompt_tokens),
                  attribute("gen_ai.usage.output_tokens", a.usage.completion_tokens),
                  attribute("vitrine.usage.cached_tokens", a.usage.cached_tokens),
                  attribute("vitrine.choice", a.choice),
                  attribute("vitrine.preemptions", a.preemptions)};
  if (all)
    for (const auto& [key, ns] :
         {std::pair("vitrine.input_ns", a.input_ns), std::pair("vitrine.output_ns", a.output_ns),
          std::pair("vitrine.wasted_ns", a.wasted_ns)})
      out.push_back(attribute(key, ns));
  if (a.stamps.ended > 0)
    out.push_back(list_attribute("gen_ai.response.finish_reasons", finish_reason_name(a.reason)));
  if (choice.input) out.push_back(attribute("vitrine.input", *choice.input));
  if (choice.output) out.push_back(attribute("vitrine.output", *choice.output));
  return out;
}

json::array part_attributes(const LifePart& part, const Names& names) {
  json::array out;
  if (part.cause != LifeCause::kNone)
    out.push_back(attribute("vitrine.reason", std::string(life_cause_name(part.cause))));
  if (part.by != 0) out.push_back(attribute("vitrine.by", names.text(part.by)));
  if (part.sum_of > 0) out.push_back(attribute("vitrine.sum_of", part.sum_of));
  return out;
}

void add_spans(json::array& out, const ExportedChoice& choice, const Names& names,
               const std::string& model, const std::string& own_trace) {
  const Account& a = choice.found->account;
  const std::vector<LifePart>& life = choice.found->life;
  if (life.empty()) return;
  const bool called = !a.traceparent.empty();
  const std::string trace = called ? std::string(trace_id_of(a.traceparent)) : own_trace;
  const std::string id = span_id(a, 1);
  json::object whole = span(trace, id, operation_of(a) + " " + model, kServer, life.front().start,
                            life.back().start + life.back().ns);
  if (called) whole["parentSpanId"] = std::string(span_id_of(a.traceparent));
  whole["attributes"] = request_attributes(choice, model, names.sees_all());
  if (!a.error.empty()) whole["status"] = {{"code", kStatusError}, {"message", a.error}};
  out.push_back(std::move(whole));
  std::uint64_t number = 1;
  for (const LifePart& part : life) {
    json::object child = span(trace, span_id(a, ++number), life_kind_name(part.kind), kInternal,
                              part.start, part.start + part.ns);
    child["parentSpanId"] = id;
    if (json::array attributes = part_attributes(part, names); !attributes.empty())
      child["attributes"] = std::move(attributes);
    out.push_back(std::move(child));
  }
}

}  // namespace

json::object request_otlp(const std::vector<ExportedChoice>& choices, const Names& names,
                          const std::string& model, const std::string& version) {
  const Account& first = choices.front().found->account;
  const std::string trace = span_id(first, 0) + span_id(first, 1);
  json::array spans;
  for (const ExportedChoice& choice : choices) add_spans(spans, choice, names, model, trace);
  json::array attributes{attribute("service.name", std::string("vitrine")),
                         attribute("service.version", version)};
  return {{"resourceSpans",
           json::array{json::object{
               {"resource", {{"attributes", std::move(attributes)}}},
               {"scopeSpans",
                json::array{json::object{{"scope", {{"name", "vitrine"}, {"version", version}}},
                                         {"spans", std::move(spans)}}}}}}}};
}

}  // namespace vitrine
