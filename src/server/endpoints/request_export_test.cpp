// A request's exports: rules of Chrome's trace format, and of OTLP/JSON as its public protocol has them.
#include <regex>
#include <set>

#include "base/process_clock.h"
#include "server/api_test_fixture.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kComplete = "/v1/completions";
constexpr const char* kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

bool matches(const json::value& text, const char* pattern) {
  return text.is_string() && std::regex_match(std::string(text.as_string()), std::regex(pattern));
}

// opentelemetry-proto: common/v1 (KeyValue, AnyValue).
void expect_value(const json::value& value) {
  static const std::set<std::string_view> kOneOf{"stringValue", "boolValue",  "intValue",
                                                 "doubleValue", "arrayValue", "kvlistValue",
                                                 "bytesValue"};
  const json::object& object = value.as_object();
  ASSERT_EQ(object.size(), 1u) << value;
  const auto& [name, inner] = *object.begin();
  EXPECT_TRUE(kOneOf.contains(name)) << value;
  if (name == "stringValue") {
    EXPECT_TRUE(inner.is_string()) << value;
  }
  // 64-bit integers are strings in the JSON of Protobuf.
  if (name == "intValue") {
    EXPECT_TRUE(matches(inner, "-?[0-9]+")) << value;
  }
  if (name == "arrayValue")
    for (const json::value& each : inner.at("values").as_array()) expect_value(each);
}
void expect_attributes(const json::value& list) {
  std::set<std::string> keys;
  for (const json::value& attribute : list.as_array()) {
    EXPECT_EQ(attribute.as_object().size(), 2u) << attribute;
    EXPECT_TRUE(keys.insert(attribute.at("key").as_string().c_str()).second) << attribute;
    expect_value(attribute.at("value"));
  }
}
// trace/v1 (Span); ids are hexadecimal in OTLP's JSON.
void expect_span(const json::value& span) {
  static const std::set<std::string_view> kFields{"traceId",
                                                  "spanId",
                                                  "traceState",
                                                  "parentSpanId",
                                                  "flags",
                                                  "name",
                                                  "kind",
                                                  "startTimeUnixNano",
                                                  "endTimeUnixNano",
                                                  "attributes",
                                                  "events",
                                                  "links",
                                                  "status",
                                                  "droppedAttributesCount",
                                                  "droppedEventsCount",
                                                  "droppedLinksCount"};
  for (const auto& [name, value] : span.as_object()) EXPECT_TRUE(kFields.contains(name)) << name;
  EXPECT_TRUE(matches(span.at("traceId"), "(?!0{32})[0-9a-f]{32}")) << span;
  EXPECT_TRUE(matches(span.at("spanId"), "(?!0{16})[0-9a-f]{16}")) << span;
  EXPECT_FALSE(span.at("name").as_string().empty());
  EXPECT_GE(span.at("kind").as_int64(), 0);
  EXPECT_LE(span.at("kind").as_int64(), 5);
  for (const char* time : {"startTimeUnixNano", "endTimeUnixNano"})
    EXPECT_TRUE(matches(span.at(time), "[0-9]{19}")) << span;
  if (const json::value* list = span.as_object().if_contains("attributes")) {
    EXPECT_FALSE(list->as_array().empty()) << "protocol buffers do not know an empty list";
    expect_attributes(*list);
  }
  if (const json::value* status = span.as_object().if_contains("status")) {
    EXPECT_GE(status->at("code").as_int64(), 0);
    EXPECT_LE(status->at("code").as_int64(), 2);
    EXPECT_TRUE(status->at("message").is_string());
  }
}
json::array expect_otlp(const std::string& text) {
  const json::value whole = json::parse(text);
  EXPECT_EQ(whole.as_object().size(), 1u);
  const json::value& resource = whole.at("resourceSpans").at(0);
  expect_attributes(resource.at("resource").at("attributes"));
  const json::value& scope = resource.at("scopeSpans").at(0);
  EXPECT_EQ(scope.at("scope").at("name"), "vitrine");
  std::set<std::string> ids;
  for (const json::value& span : scope.at("spans").as_array()) {
    expect_span(span);
    EXPECT_TRUE(ids.insert(span.at("spanId").as_string().c_str()).second) << "an id twice";
  }
  return scope.at("spans").as_array();
}
std::int64_t nanos(const json::value& span, const char* field) {
  return std::stoll(span.at(field).as_string().c_str());
}
const json::value* attribute(const json::value& span, std::string_view key) {
  const json::value* list = span.as_object().if_contains("attributes");
  if (list == nullptr) return nullptr;
  for (const json::value& each : list->as_array())
    if (each.at("key").as_string() == key) return &each.at("value").as_object().begin()->value();
  return nullptr;
}

class ExportTest : public ApiTest {
 protected:
  void ask(const std::string& label, const std::string& fields, const std::string& parent = "",
           const std::string& tenant = "", const std::string& path = kComplete) {
    FakeExchange x(io, "{" + fields + "}");
    HttpRequest& http = x.mutable_request();
    http.id = label, http.tenant = tenant;
    if (!tenant.empty()) http.rights = {.is_operator = false};
    http.received_ns = process_ns(), http.body_ns = process_ns(), http.taken_ns = process_ns();
    auto written = std::make_shared<Written>();
    http.written = written;
    if (!parent.empty()) http.headers.emplace_back("traceparent", parent);
    begin(x, path);
    finish();
    written->first_ns = written->last_ns = process_ns(), written->done = true;
  }
  std::pair<int, std::string> look(const std::string& label, const std::string& query,
                                   const std::string& tenant = "") {
    FakeExchange x(io, "");
    HttpRequest& http = x.mutable_request();
    http.method = "GET", http.tenant = tenant, http.query = query;
    if (!tenant.empty()) http.rights = {.is_operator = false};
    begin(x, "/api/requests/" + label + "/export");
    while (open > 0) turn();
    return {x.status, x.body};
  }
  std::string exported(const std::string& label, const std::string& query,
                       const std::string& tenant = "") {
    auto [status, text] = look(label, query, tenant);
    EXPECT_EQ(status, 200) << text;
    return text;
  }
  json::array life_of(const std::string& label) {
    auto x = call("/api/requests/" + label, "", "", "GET");
    return json::parse(x->body).at("requests").at(0).at("life").as_array();
  }
};

TEST_F(ExportTest, PerfettoIsNestedInTheOrderOfTimeAndSumsAsTheLife) {
  ask("one", R"("prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":12,"n":3,"ignore_eos":true)");
  const json::value trace = json::parse(exported("one", "format=perfetto"));
  double before = 0;
  // Of each track: what is open, by its end.
  std::map<std::int64_t, std::vector<std::int64_t>> open_until;
  std::map<std::int64_t, std::int64_t> parts, whole;
  int steps = 0, counters = 0;
  for (const json::value& event : trace.at("traceEvents").as_array()) {
    const std::string_view kind = event.at("ph").as_string();
    if (kind == "M") continue;
    const double at = event.at("ts").to_number<double>();
    EXPECT_GE(at, before);
    before = at;
    if (kind == "C") {
      for (const auto& [name, value] : event.at("args").as_object())
        EXPECT_GE(value.to_number<double>(), 0) << name;
      ++counters;
      continue;
    }
    ASSERT_EQ(kind, "X");
    const std::int64_t track = event.at("tid").as_int64();
    const std::int64_t start = event.at("args").at("start_ns").as_int64();
    const std::int64_t end = start + event.at("args").at("ns").as_int64();
    EXPECT_NEAR(event.at("dur").to_number<double>() * 1e3, static_cast<double>(end - start), 0.5);
    auto& stack = open_until[track];
    while (!stack.empty() && stack.back() <= start) stack.pop_back();
    if (!stack.empty()) {
      EXPECT_LE(end, stack.back()) << event << " sticks out";
    }
    if (event.at("name") == "request") {
      EXPECT_TRUE(stack.empty());
      whole[track] = end - start;
    }
    if (stack.size() == 1) parts[track] += end - start;
    steps += stack.size() == 2;
    stack.push_back(end);
  }
  EXPECT_EQ(whole.size(), 3u);
  EXPECT_EQ(parts, whole);
  EXPECT_GE(steps, 12 * 3);
  EXPECT_GT(counters, 12);
  std::int64_t life = 0;
  for (const json::value& part : life_of("one")) life += part.at(2).as_int64();
  EXPECT_EQ(whole.begin()->second, life);
}

TEST_F(ExportTest, OtlpKeepsItsRulesAndJoinsTheCallersTrace) {
  ask("one", R"("messages":[{"role":"user","content":"abc"}],"max_tokens":6)", kParent, "",
      "/v1/chat/completions");
  const std::string text = exported("one", "format=otlp");
  EXPECT_EQ(exported("one", "format=otlp"), text) << "the same whenever it is asked for";
  const json::array spans = expect_otlp(text);
  const json::value& whole = spans.at(0);
  EXPECT_EQ(whole.at("traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(whole.at("parentSpanId"), "00f067aa0ba902b7");
  EXPECT_EQ(whole.at("name"), "chat tiny");
  EXPECT_EQ(*attribute(whole, "gen_ai.operation.name"), "chat");
  EXPECT_EQ(*attribute(whole, "gen_ai.request.model"), "tiny");
  EXPECT_EQ(*attribute(whole, "gen_ai.usage.output_tokens"), "6");
  EXPECT_EQ(
      attribute(whole, "gen_ai.response.finish_reasons")->at("values").at(0).at("stringValue"),
      "length");
  // Its children are the parts of the life.
  const json::array life = life_of("one");
  ASSERT_EQ(spans.size(), life.size() + 1);
  std::set<std::string> names;
  std::int64_t at = nanos(whole, "startTimeUnixNano");
  for (std::size_t i = 0; i < life.size(); ++i) {
    const json::value& span = spans.at(i + 1);
    EXPECT_EQ(span.at("parentSpanId"), whole.at("spanId"));
    EXPECT_EQ(span.at("traceId"), whole.at("traceId"));
    EXPECT_EQ(span.at("name"), life.at(i).at(0));
    EXPECT_EQ(nanos(span, "startTimeUnixNano"), at);
    at = nanos(span, "endTimeUnixNano");
    names.insert(span.at("name").as_string().c_str());
  }
  EXPECT_EQ(at, nanos(whole, "endTimeUnixNano"));
  for (const char* name : {"queue", "prefill", "decode"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(ExportTest, ACallersSpanThatIsNotValidCountsAsNone) {
  const std::string good = kParent;
  int n = 0;
  for (std::string bad :
       {std::string("00-" + std::string(32, '0') + "-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-" + std::string(16, '0') + "-01"),
        "ff" + good.substr(2), "0" + good, good + "-more", good.substr(0, 54),
        good.substr(0, 3) + "4BF92F" + good.substr(9), std::string(5000, '0'),
        std::string("\"}],\"x\":[{\"")}) {
    const std::string label = fmt::format("bad-{}", n++);
    ask(label, R"("prompt":"abc","max_tokens":1)", bad);
    const json::value whole = expect_otlp(exported(label, "format=otlp")).at(0);
    EXPECT_FALSE(whole.as_object().contains("parentSpanId")) << bad;
    EXPECT_NE(whole.at("traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
  }
  ask("later", R"("prompt":"abc","max_tokens":1)", "01" + good.substr(2) + "-more");
  EXPECT_EQ(expect_otlp(exported("later", "format=otlp")).at(0).at("parentSpanId"),
            "00f067aa0ba902b7");
}

TEST_F(ExportTest, AlsoOfThoseThatFailed) {
  ask("refused", R"("prompt":"abc","max_tokens":"x")", kParent);
  const json::array spans = expect_otlp(exported("refused", "format=otlp"));
  EXPECT_EQ(spans.at(0).at("status").at("code"), 2);
  EXPECT_EQ(spans.at(0).as_object().contains("parentSpanId"), false) << "its head was not read";
  json::parse(exported("refused", "format=perfetto"));
  ask("embedded", R"("input":"abc")", "", "", "/v1/embeddings");
  EXPECT_EQ(
      *attribute(expect_otlp(exported("embedded", "format=otlp")).at(0), "gen_ai.operation.name"),
      "embeddings");
}

TEST_F(ExportTest, TextOnlyWhenAskedForAndForThoseWhoMay) {
  ask("mine", R"("prompt":"secretword","max_tokens":4,"vitrine":{"record":true})", "", "ann");
  ask("plain", R"("prompt":"abc","max_tokens":4)", "", "ann");
  for (const char* format : {"format=otlp", "format=perfetto"}) {
    EXPECT_THAT(exported("mine", format, "ann"), Not(HasSubstr("secretword")));
    EXPECT_THAT(exported("mine", format + std::string("&text=1"), "ann"), HasSubstr("secretword"));
    EXPECT_THAT(exported("mine", format + std::string("&text=1")), HasSubstr("secretword"));
    EXPECT_EQ(look("mine", format, "bob").first, 404);
    EXPECT_EQ(look("mine", format + std::string("&text=1"), "bob").first, 404);
    EXPECT_EQ(look("plain", format + std::string("&text=1"), "ann").first, 404);
    // What the steps say of others is an operator's.
    EXPECT_THAT(exported("mine", format, "ann"), Not(HasSubstr("share")));
    EXPECT_THAT(exported("mine", format, "ann"), Not(HasSubstr("sequences")));
  }
}

TEST_F(ExportTest, AsksForRoomBeforeItIsMade) {
  ask("one", R"("prompt":"abcdef","max_tokens":20,"n":4,"vitrine":{"record":true})");
  std::map<std::string, std::int64_t> held;
  for (const char* query : {"format=perfetto", "format=otlp", "format=otlp&text=1"}) {
    const auto ask_with = [&](std::int64_t most) {
      auto x = std::make_unique<FakeExchange>(io, "");
      x->mutable_request().method = "GET", x->mutable_request().query = query;
      x->most_held = most;
      begin(*x, "/api/requests/one/export");
      while (open > 0) turn();
      return x;
    };
    held[query] = ask_with(INT64_MAX)->held;
    EXPECT_EQ(ask_with(held[query])->status, 200);
    EXPECT_EQ(ask_with(held[query] - 1)->status, 503) << query;
  }
  EXPECT_GT(held["format=perfetto"], held["format=otlp"]) << "only the first tells steps";
  EXPECT_GT(held["format=otlp&text=1"], held["format=otlp"]);
  EXPECT_GT(held["format=otlp"], 1000);
}

TEST_F(ExportTest, QueriesThatAreWrongAreTold) {
  ask("one", R"("prompt":"abc","max_tokens":1)");
  for (const auto& [query, said] :
       std::map<std::string, std::string>{{"", "allowed perfetto or otlp"},
                                          {"format=", "allowed perfetto or otlp"},
                                          {"format=vtr9", "vtr9"},
                                          {"format=otlp&text=2", "allowed 0 or 1"},
                                          {"format=otlp&more=1", "allowed format and text"},
                                          {"&&&", "allowed"},
                                          {std::string(9000, 'a'), "allowed format and text"}}) {
    auto [status, text] = look("one", query);
    EXPECT_EQ(status, 400) << query.substr(0, 50);
    EXPECT_THAT(text, HasSubstr(said));
    EXPECT_LT(text.size(), 600u);
  }
  EXPECT_EQ(look("nobody", "format=otlp").first, 404);
}

}  // namespace
}  // namespace vitrine::test
