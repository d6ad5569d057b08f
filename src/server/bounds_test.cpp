// What a request may cost, at every endpoint that takes a body: work in proportion to its bytes,
// and a short echo in errors. A new endpoint is found by itself; its fields are listed here.
#include <sys/resource.h>

#include "server/api_test_fixture.h"
#include "server/request/json_fields.h"

namespace vitrine::test {
namespace {

constexpr std::size_t kSmall = 1 << 20, kLarge = 16 << 20;
constexpr double kMostRatio = 20;
// Seconds. What takes less for 1 MiB is taken for this long: caches hold 1 MiB and not 16.
constexpr double kFloor = 0.05;
constexpr double kNothing = 0.001;
constexpr std::size_t kEcho = 200;

// Bodies with a hole, '@', for a JSON value.
struct Fields {
  std::string base;                 // members that make a request complete
  std::vector<std::string> fields;  // each replaces or joins them
  std::vector<std::string> bodies;  // where the hole is deeper
};

const char* const kTools =
    R"("tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object"}}}])";

std::vector<std::string> text_fields() {
  return {"model",
          "seed",
          "n",
          "temperature",
          "logit_bias",
          "samplers",
          "preset",
          "stream",
          "max_tokens",
          "stop",
          "stream_options",
          "priority",
          "timeout",
          "user",
          "cache_salt",
          "speculative",
          "min_tokens",
          "stop_token_ids",
          "vitrine",
          "metadata",
          "regex",
          "grammar",
          "choice",
          "response_format",
          "logprobs",
          "prediction",
          "ignore_eos",
          "bad_words",
          "allowed_token_ids",
          "dry_sequence_breakers",
          "repetition_detection",
          "use_beam_search",
          "beams",
          "beam_groups",
          "length_penalty",
          "diversity_penalty",
          "early_stopping",
          "mirostat",
          "dry_multiplier"};
}

std::vector<std::string> constraint_bodies(const std::string& base) {
  std::vector<std::string> out;
  for (const char* schema :
       {R"(@)", R"({"anyOf":@})", R"({"enum":@})", R"({"properties":@})", R"({"required":@})",
        R"({"const":@})", R"({"pattern":@})", R"({"format":@})", R"({"$ref":@})",
        R"({"$defs":@,"$ref":"#/$defs/k1"})", R"({"type":@})", R"({"minimum":@})",
        R"({"not":{"enum":@}})", R"({"prefixItems":@})", R"({"description":@})"})
    out.push_back(fmt::format(
        R"({{{},"response_format":{{"type":"json_schema","json_schema":{{"schema":{}}}}}}})", base,
        schema));
  out.push_back("{" + base + R"(,"response_format":{"type":@}})");
  out.push_back("{" + base + R"(,"response_format":@})");
  return out;
}

std::map<std::string, Fields> all_fields() {
  std::map<std::string, Fields> out;
  out["/tokenize"] = {R"("add_special":true)",
                      {"content", "text", "prompt", "add_special", "with_pieces", "trace", "model"},
                      {R"({"with_pieces":true,"content":@})", R"({"trace":true,"content":@})",
                       R"({"parse_special":true,"content":@})"}};
  out["/detokenize"] = {R"("skip_special":true)", {"tokens", "skip_special", "model"}, {}};
  out["/v1/embeddings"] = {R"("input":"a")",
                           {"input", "model", "dimensions", "encoding_format", "pooling",
                            "priority", "timeout", "cache_salt", "user", "speculative"},
                           {}};
  Fields completions{R"("prompt":"a","max_tokens":1)", text_fields(), {}};
  for (const char* more : {"prompt", "echo", "suffix", "best_of"})
    completions.fields.push_back(more);
  completions.bodies = constraint_bodies(completions.base);
  completions.bodies.push_back(R"({"prompt":@,"max_tokens":1,"echo":true,"logprobs":3})");
  for (const char* prediction : {R"({"type":@,"content":"a"})", R"({"type":"content","content":@})",
                                 R"({"type":"content","content":[@]})",
                                 R"({"type":"content","content":[{"type":"text","text":@}]})"})
    completions.bodies.push_back(
        fmt::format("{{{},\"prediction\":{}}}", completions.base, prediction));
  Fields chat{R"("messages":[{"role":"user","content":"a"}],"max_tokens":1)", text_fields(), {}};
  for (const char* more :
       {"messages", "tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs",
        "reasoning_effort", "reasoning_budget", "top_logprobs", "functions", "modalities"})
    chat.fields.push_back(more);
  chat.bodies = constraint_bodies(chat.base);
  Fields render{chat.base, {"messages", "tools", "tool_choice", "chat_template_kwargs"}, {}};
  for (
      const char* message :
      {R"({"role":"user","content":@})", R"({"role":@,"content":"a"})",
       R"({"role":"user","content":"a","name":@})", R"({"role":"user","content":[@]})",
       R"({"role":"user","content":[{"type":@,"text":"a"}]})",
       R"({"role":"user","content":[{"type":"text","text":@}]})",
       R"({"role":"assistant","tool_calls":@})", R"({"role":"assistant","reasoning_content":@})",
       R"({"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":@}}]})",
       R"({"role":"assistant","tool_calls":[{"type":"function","function":{"name":@}}]})",
       R"({"role":"tool","tool_call_id":@,"content":"a"})"})
    render.bodies.push_back(fmt::format(R"({{"messages":[{}],"max_tokens":1}})", message));
  render.bodies.push_back(fmt::format(R"({{{},"chat_template_kwargs":{{"x":@}}}})", chat.base));
  for (const char* function :
       {R"({"name":@})", R"({"name":"f","description":@})", R"({"name":"f","parameters":@})",
        R"({"name":"f","strict":true,"parameters":{"properties":@}})"})
    render.bodies.push_back(fmt::format(R"({{{},"tools":[{{"type":"function","function":{}}}]}})",
                                        chat.base, function));
  render.bodies.push_back(
      fmt::format(R"({{{},{},"tool_choice":{{"type":"function","function":{{"name":@}}}}}})",
                  chat.base, kTools));
  Fields spans = render;
  spans.fields.push_back("spans");
  for (std::string body : render.bodies) spans.bodies.push_back(body.insert(1, R"("spans":true,)"));
  chat.bodies.insert(chat.bodies.end(), render.bodies.begin(), render.bodies.end());
  const std::vector<std::string> sampling{R"({"position":4,"sampling":@})",
                                          R"({"position":4,"sampling":{"logit_bias":@}})",
                                          R"({"position":4,"sampling":{"temperature":@}})"};
  out["/api/requests/*/stages"] = {
      R"("position":4)", {"position", "sampling", "samplers", "top", "draws"}, sampling};
  out["/api/requests/*/scan"] = {R"("from":4)", {"from", "sampling", "samplers"}, {}};
  out["/api/requests/*/fork"] = {
      R"("position":4,"max_tokens":1)",
      {"position", "token", "sampling", "samplers", "seed", "n", "max_tokens", "logprobs",
       "top_logprobs", "stream", "stream_options", "vitrine"},
      sampling};
  out["/api/peak"] = {R"("again":false)", {"again"}, {}};
  out["/api/lab/company"] = {R"("n":1,"max_tokens":1)", {"prompt", "n", "max_tokens"}, {}};
  out["/api/requests/*/hold"] = {R"("allow":1)", {"allow", "release"}, {}};
  out["/v1/completions"] = completions;
  out["/v1/chat/completions"] = chat;
  out["/apply-template"] = spans;
  return out;
}

std::vector<std::string> post_paths() {
  std::vector<std::string> out;
  for (const Endpoint* endpoint : all_endpoints())
    if (std::string_view(endpoint->method) == "POST")
      out.insert(out.end(), endpoint->paths.begin(), endpoint->paths.end());
  return out;
}

// Every body with a hole.
std::vector<std::string> bodies_of(const std::string& path) {
  static const std::map<std::string, Fields> kFields = all_fields();
  auto found = kFields.find(path);
  EXPECT_NE(found, kFields.end()) << path << ": list its fields in this test";
  if (found == kFields.end()) return {};
  std::vector<std::string> out = found->second.bodies;
  for (const std::string& field : found->second.fields)
    out.push_back(fmt::format(R"({{{},"{}":@}})", found->second.base, field));
  return out;
}

std::string fill(const std::string& body, std::string_view value) {
  std::size_t at = body.find('@');
  return body.substr(0, at) + std::string(value) + body.substr(at + 1);
}

std::string repeated(std::string_view begin, std::string_view unit, std::string_view end,
                     std::size_t size) {
  std::string out(begin);
  out.reserve(size + 64);
  for (std::size_t i = 0; out.size() + unit.size() + end.size() <= size; ++i) {
    // '~' is a number, so that names differ.
    for (char c : unit)
      if (c == '~')
        out += std::to_string(i);
      else
        out += c;
    out += ',';
  }
  if (out.ends_with(',')) out.pop_back();
  return out += end;
}

using Shape = std::function<std::string(std::size_t size)>;

std::string long_string(std::string_view unit, std::size_t size) {
  std::string out = "\"";
  while (out.size() + unit.size() < size) out += unit;
  return out += '"';
}

// Values of about `size` bytes.
struct Kind {
  const char* name;
  const char* body;  // where 16 MiB of it are sent to every endpoint; null: to fields only
  Shape make;
};

const std::vector<Kind>& kinds() {
  auto string = [](const char* unit) {
    return [unit](std::size_t n) { return long_string(unit, n); };
  };
  auto list = [](const char* item) {
    return [item](std::size_t n) { return repeated("[", item, "]", n); };
  };
  auto object = [](const char* member) {
    return [member](std::size_t n) { return repeated("{", member, "}", n); };
  };
  const char* const unknown = R"({"unknown":@})";
  static const std::vector<Kind> kKinds{
      {"letters", unknown, string("a")},
      {"escapes", unknown, string("\\u00e9\\n")},
      {"words", nullptr, string("ab cd\\n")},
      {"specials", nullptr, string("<|im_start|>")},
      {"numbers", unknown, list("4")},
      {"fractions", nullptr, list("-1.5e-3")},
      {"strings", R"({"stop":@})", list("\"a~\"")},
      {"objects", nullptr, list("{\"k\":{}}")},
      {"lists", nullptr, list("[[[[4]]]]")},
      {"depth", unknown, [](std::size_t n) { return std::string(n, '['); }},
      {"names", "@", object("\"k~\":1")},
      {"same names", nullptr, object("\"k\":1")},
      {"ids as names", R"({"logit_bias":@})", object("\"~\":1")},
      {"a long name", "@", [](std::size_t n) { return "{" + long_string("a", n) + ":1}"; }},
      {"messages", R"({"messages":@})", list(R"({"role":"user","content":"a"})")},
      {"parts", nullptr, list(R"({"type":"text","text":"a"})")},
      {"tools", R"({"tools":@})", list(R"({"type":"function","function":{"name":"f~"}})")},
      {"references", nullptr, list(R"({"$ref":"#a"})")},
      {"schemas", nullptr, object(R"("k~":{"type":"string"})")},
  };
  return kKinds;
}

// Of the program itself: how fast the kernel clears new pages depends on who else wants some.
double thread_seconds() {
  rusage use{};
  getrusage(RUSAGE_THREAD, &use);
  return static_cast<double>(use.ru_utime.tv_sec) +
         static_cast<double>(use.ru_utime.tv_usec) * 1e-6;
}

// Everything runs on the test's thread, so its processor time is the work, whatever else the
// machine does.
class BoundsTest : public ApiTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's time is not the program's";
#endif
    record_star();
  }
  double seconds(const std::string& path, std::string body) {
    FakeExchange x(io, std::move(body));
    x.keep = false;
    double began = thread_seconds();
    begin(x, path);
    finish();
    EXPECT_NE(x.status, 0);
    return thread_seconds() - began;
  }
  double best(int times, const std::string& path, const std::string& body) {
    double out = seconds(path, body);
    for (int i = 1; i < times; ++i) out = std::min(out, seconds(path, body));
    return out;
  }
  // 16 MiB take at most 20 times as long as 1 MiB.
  void expect_linear(const std::string& path, const std::string& body, const Shape& shape) {
    const double small = best(3, path, fill(body, shape(kSmall)));
    const double most = kMostRatio * std::max(small, kFloor);
    const std::string large = fill(body, shape(kLarge));
    double took = best(2, path, large);
    if (took >= most) took = best(6, path, large);  // others may have had the machine's caches
    EXPECT_LT(took, most) << "1 MiB: " << small;
  }
  // The same at the price of small bodies: only what grows too fast from one size to the next is
  // tried with more, and only what takes time beside the parsing of JSON at all.
  void expect_no_growth(const std::string& path, const std::string& body, const Shape& shape) {
    double before = 0;
    for (std::size_t size = kSmall / 4; size <= kSmall * 4; size *= 4) {
      const std::string value = shape(size);
      const double began = thread_seconds();
      json::value parsed;
      parse_body(value, parsed);
      const double parsing = thread_seconds() - began;
      const double took = seconds(path, fill(body, value)) - parsing;
      if (took < kNothing || (before > 0 && took < 6 * before)) return;
      before = took;
    }
    expect_linear(path, body, shape);
  }
};

TEST_F(BoundsTest, WorkGrowsWithTheBytesOfABody) {
  for (const std::string& path : post_paths())
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(path + " " + kind.name);
      if (kind.body != nullptr) expect_linear(path, kind.body, kind.make);
    }
}

TEST_F(BoundsTest, WorkGrowsWithTheBytesOfAField) {
  for (const std::string& path : post_paths())
    for (const std::string& body : bodies_of(path))
      for (const Kind& kind : kinds()) {
        SCOPED_TRACE(fmt::format("{} {} {}", path, body, kind.name));
        expect_no_growth(path, body, kind.make);
      }
}

// Pairs of letters that messages of the server do not have.
std::size_t echoed(std::string_view answer) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = answer.find("qz", at)) != answer.npos; at += 2) count += 2;
  return count;
}

std::string qz(std::size_t size) {
  std::string out;
  while (out.size() < size) out += "qz";
  return out;
}

class EchoTest : public ApiTest {
 protected:
  void SetUp() override { record_star(); }
  // As an operator and, with `tenant`, as one who may less.
  void expect_short(const std::string& path, const std::string& body,
                    const std::string& tenant = "") {
    auto x = call(path, body, tenant);
    if (x->status < 400) return;
    ++errors;
    EXPECT_LE(echoed(x->body), kEcho) << path << " " << body.substr(0, 200) << "\n" << x->body;
    EXPECT_LT(x->body.size(), 2000u) << path << " " << body.substr(0, 200) << "\n" << x->body;
  }
  int errors = 0;
};

TEST_F(EchoTest, ErrorsShowLittleOfAField) {
  const std::string text = qz(600);
  for (const std::string& path : post_paths()) {
    std::vector<std::string> bodies = bodies_of(path);
    bodies.push_back("@");
    bodies.push_back(R"({"unknown":@})");
    for (const std::string& body : bodies)
      for (const char* value : {R"("%")",
                                R"(["%"])",
                                R"({"%":1})",
                                R"({"%":"%"})",
                                R"([{"%":{}}])",
                                R"({"type":"%"})",
                                R"({"type":"function","function":{"name":"%"}})",
                                R"("%)",
                                R"([["%"]])",
                                R"("root ::= %")",
                                R"("% ::= \"a\"")",
                                R"("% root")",
                                R"("root ::= \"a\"\n% ::= %")",
                                R"("root ::= %\n% ::= % \"a\"")",
                                R"("(?%")",
                                R"("[%-")",
                                R"("#%")",
                                R"("#/%")",
                                R"({"$ref":"#/%"})",
                                R"({"k":{"format":"%"}})",
                                R"({"role":"%","content":"a"})",
                                R"({"name":"%"})",
                                R"("a %")",
                                R"({"000000000000000%":1})"}) {
        std::string filled;
        for (const char* c = value; *c != 0; ++c)
          if (*c == '%')
            filled += text;
          else
            filled += *c;
        expect_short(path, fill(body, filled));
      }
    // Numbers with many digits.
    for (const std::string& body : bodies)
      for (const std::string& number :
           {std::string(600, '7'), "1e" + std::string(600, '0'), "0." + std::string(600, '0') + "1",
            "{\"" + std::string(600, '0') + "1\":null}",
            "{\"" + std::string(600, '0') + "1\":\"x\"}"}) {
        auto x = call(path, fill(body, number));
        if (x->status >= 400) {
          EXPECT_LT(x->body.size(), 1000u) << path << " " << body << "\n" << x->body;
        }
      }
  }
  EXPECT_GT(errors, 500);
}

TEST_F(EchoTest, ErrorsShowLittleOfAPath) {
  for (const Route& route : routes)
    if (const auto star = route.path.find('*'); star != route.path.npos)
      for (const char* tenant : {"", "ann"})
        expect_short(std::string(route.path).replace(star, 1, qz(5000)), "", tenant);
  EXPECT_GE(errors, 4);
}

}  // namespace
}  // namespace vitrine::test
