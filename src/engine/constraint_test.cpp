// Answers under constraints: whatever the model wants, and whatever happens around a request.
#include "base/json.h"
#include "engine/test_engine.h"
#include "grammar/compiler.h"

namespace vitrine {
namespace {

using namespace test;
using Kind = ConstraintSpec::Kind;

// Tokens 0 to 2 are special, so is the last one.
const std::vector<std::string>& pieces() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> out(3);
    for (char c : std::string_view("{}[]\":,. -\n\\0123456789abcdefilmnorstu"))
      out.emplace_back(1, c);
    for (const char* more :
         {"{\"",  "\":", "\",", "\": \"", "\"}",  "],",       "}}",   "\"na", "true", "null",
          ", \"", "12",  "0.5", "\xC3",   "\xA9", "\xE2\x82", "\xAC", "ab",   "cde",  "\"]"})
      out.emplace_back(more);
    out.resize(kVocab);
    return out;
  }();
  return kAll;
}

std::shared_ptr<const Constraint> compile(const ConstraintSpec& spec) {
  static ConstraintCompiler compiler(pieces());
  auto made = compiler.compile(spec);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? *made : nullptr;
}

std::shared_ptr<const Constraint> of_schema(std::string_view text) {
  return compile({.kind = Kind::kJsonSchema, .schema = *parse_json(text, "schema")});
}
std::shared_ptr<const Constraint> of_regex(std::string text) {
  return compile({.kind = Kind::kRegex, .text = std::move(text)});
}

constexpr const char* kSchema = R"({"type":"object","properties":{
    "na":{"type":"string","minLength":1,"maxLength":6},
    "nu":{"type":"integer","minimum":-7,"maximum":120},
    "list":{"type":"array","items":{"anyOf":[{"type":"boolean"},{"type":"number","minimum":0,"exclusiveMaximum":2},
            {"enum":["ab","cde",null]}]},"minItems":1,"maxItems":3},
    "more":{"type":"object","properties":{"a":{"const":"\"\\"},"b":{"type":"null"}},"required":["a"],
            "additionalProperties":false}},
    "required":["na","nu","list"],"additionalProperties":false})";

// The same, by hand.
testing::AssertionResult is_valid(const std::string& text) {
  auto fail = [&](const char* why) { return testing::AssertionFailure() << why << ": " << text; };
  auto parsed = parse_json(text, "answer");
  if (!parsed.ok() || !parsed->is_object()) return fail("not an object");
  const json::object& o = parsed->get_object();
  if (!o.contains("na") || !o.contains("nu") || !o.contains("list")) return fail("missing");
  for (const auto& [key, value] : o)
    if (key != "na" && key != "nu" && key != "list" && key != "more") return fail("a strange key");
  if (!o.at("na").is_string() || o.at("na").get_string().empty()) return fail("na");
  std::size_t characters = 0;
  for (char c : o.at("na").get_string()) characters += (c & 0xC0) != 0x80;
  if (characters > 6) return fail("na is too long");
  if (!o.at("nu").is_int64() || o.at("nu").get_int64() < -7 || o.at("nu").get_int64() > 120)
    return fail("nu");
  if (!o.at("list").is_array() || o.at("list").get_array().empty() ||
      o.at("list").get_array().size() > 3)
    return fail("list");
  for (const json::value& v : o.at("list").get_array()) {
    const double number = v.is_number() ? v.to_number<double>() : 0;
    const bool ok = v.is_bool() || v.is_null() || (v.is_number() && number >= 0 && number < 2) ||
                    (v.is_string() && (v.get_string() == "ab" || v.get_string() == "cde"));
    if (!ok) return fail("an item");
  }
  if (!o.contains("more")) return testing::AssertionSuccess();
  const json::value& more = o.at("more");
  if (!more.is_object() || !more.get_object().contains("a") || more.at("a") != "\"\\")
    return fail("more");
  for (const auto& [key, value] : more.get_object())
    if (key != "a" && !(key == "b" && value.is_null())) return fail("in more");
  return testing::AssertionSuccess();
}

Request constrained(int seed, double temperature, std::shared_ptr<const Constraint> constraint) {
  Request r = request(seed, 1 + seed % 40, 200, temperature);
  r.ignore_eos = false;
  r.constraint = std::move(constraint);
  return r;
}

std::string text_of(TokenStream& stream) {
  std::string out;
  for (std::int32_t id : tokens_of(stream)) out += pieces()[id];
  return out;
}

// At every place of many walks: what a mask has is accepted, what it has not is refused.
TEST(Constraints, AMaskHasWhatIsAccepted) {
  auto constraint = of_schema(kSchema);
  std::mt19937 rng(3);
  // The last two: in the middle of the last character that a string may have.
  const std::string starts[] = {"", "{\"na\":\"]-abf\\u04", "{\"na\":\"]-abf\xC3"};
  for (int walk = 0; walk < 150; ++walk) {
    ConstraintMatcher matcher(constraint);
    std::string text = starts[walk % 3];
    ASSERT_TRUE(text.empty() || matcher.accept_text(text));
    for (int step = 0; step < 120; ++step) {
      auto mask = matcher.mask();
      std::vector<std::int32_t> allowed;
      for (std::int32_t t = 0; t < kVocab; ++t) {
        auto at = static_cast<std::size_t>(t) / 64;
        bool in = at < mask->words.size() && mask->words[at] >> (t % 64) & 1;
        if (pieces()[t].empty()) {
          ASSERT_FALSE(in) << t;
          continue;
        }
        ConstraintMatcher copy = matcher;
        ASSERT_EQ(copy.accept(t), in) << text << " and then " << pieces()[t];
        if (in) allowed.push_back(t);
      }
      ASSERT_EQ(mask->any, !allowed.empty());
      if (allowed.empty()) break;
      std::int32_t next = allowed[rng() % allowed.size()];
      text += pieces()[next];
      ASSERT_TRUE(matcher.accept(next));
    }
  }
}

// In a pool for hardly more than one sequence, several choices at once, streams and all: what comes
// out is valid and the same as alone.
TEST(Constraints, EveryAnswerIsValid) {
  const bool many = std::getenv("VITRINE_LONG_TESTS") != nullptr;
  const int requests = many ? 500 : 60;
  auto constraint = of_schema(kSchema);
  EngineOptions lone = options(1);
  lone.prefix_cache = false;
  auto alone = make_engine(lone);
  std::map<int, std::string> expected;
  for (int delay : {0, 1}) {
    EngineOptions o = options(6);
    o.kv_tokens = kContext + 64;
    o.step_tokens = 40;
    o.commit_delay = delay;
    o.poison_pages = true;
    auto engine = make_engine(o);
    std::vector<std::vector<std::shared_ptr<TokenStream>>> streams;
    std::mt19937 rng(8);
    for (int i = 0; i < requests; ++i) {
      Request r = constrained(i, static_cast<double>(i % 5) / 2, constraint);
      r.choices = 1 + i % 3;
      r.max_backlog = i % 4 == 0 ? 3 : 0;
      streams.push_back(*engine->submit_choices(r));
      if (i % 8 == 7)
        for (unsigned steps = rng() % 20; steps > 0; --steps) engine->step();
    }
    // Slow readers are read now and then.
    std::vector<std::vector<std::string>> texts(streams.size());
    std::vector<TokenEvent> events;
    std::vector<TokenLogprob> top;
    for (bool all = false; !all;) {
      engine->step();
      engine->check_integrity();
      all = true;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        texts[i].resize(streams[i].size());
        for (std::size_t c = 0; c < streams[i].size(); ++c) {
          events.clear();
          all = streams[i][c]->read(events, top) && all;
          for (const TokenEvent& e : events) texts[i][c] += pieces()[e.token];
        }
      }
    }
    int preemptions = 0;
    for (const Account& a : engine->accounts()) preemptions += a.preemptions;
    EXPECT_GT(preemptions, 0);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      for (std::size_t c = 0; c < streams[i].size(); ++c) {
        Finish finish = streams[i][c]->wait();
        ASSERT_EQ(finish.reason, FinishReason::kStop) << texts[i][c] << ": " << finish.error;
        ASSERT_TRUE(is_valid(texts[i][c]));
      }
      if (i % 10 != 0) continue;
      auto [it, added] = expected.try_emplace(static_cast<int>(i));
      if (added) {
        auto stream = alone->submit(
            constrained(static_cast<int>(i), static_cast<double>(i % 5) / 2, constraint));
        drain(*alone);
        it->second = text_of(**stream);
      }
      EXPECT_EQ(texts[i][0], it->second);
    }
  }
}

TEST(Constraints, TheTextEndsWhereNothingCanFollow) {
  auto engine = make_engine(options());
  for (bool ignore_eos : {false, true}) {
    Request r = constrained(1, 1, of_regex("ab(cd|e){3}"));
    r.ignore_eos = ignore_eos;
    r.min_tokens = 100;  // which the constraint does not have
    auto stream = *engine->submit(r);
    drain(*engine);
    const std::string text = text_of(*stream);
    EXPECT_TRUE(text.starts_with("ab") && text.size() >= 5) << text;
    EXPECT_EQ(stream->wait().reason, FinishReason::kStop);
    EXPECT_EQ(stream->wait().stop_token, -1);
  }
}

TEST(Constraints, EndTokensComeOnlyWhereTheTextMayEnd) {
  auto engine = make_engine(options());
  // The model wants nothing but the end.
  for (double temperature : {0.0, 1.0}) {
    Request r = constrained(2, temperature, of_regex("a{4}b*"));
    ASSERT_TRUE(r.sampling.set_logit_bias({{kEos, 100}, {kNanToken, -100}}).ok());
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(text_of(*stream), "aaaa");
    EXPECT_EQ(stream->wait().stop_token, kEos);
  }
}

TEST(Constraints, StopTokensAreNoPartOfTheText) {
  auto engine = make_engine(options());
  Request r = constrained(2, 1, of_regex("[ab]{10}|[ab]{20}"));
  const auto a = static_cast<std::int32_t>(std::find(pieces().begin(), pieces().end(), "a") -
                                           pieces().begin());
  r.stop_token_ids = {a};
  auto stream = *engine->submit(r);
  drain(*engine);
  const std::string text = text_of(*stream);
  EXPECT_TRUE(text.size() == 10 || text.size() == 20) << text;
}

TEST(Constraints, WhatNoTokenSpellsIsAnError) {
  auto engine = make_engine(options());
  auto stream = *engine->submit(constrained(3, 1, of_regex("abz")));
  drain(*engine);
  EXPECT_EQ(text_of(*stream), "ab");
  EXPECT_EQ(stream->wait().reason, FinishReason::kError);
  EXPECT_NE(stream->wait().error.find("constraint"), std::string::npos);
}

TEST(Constraints, SequencesWithAndWithoutShareABatch) {
  auto engine = make_engine(options(4));
  auto free = *engine->submit(request(5, 20, 30)), other = *engine->submit(request(5, 20, 30));
  auto bound = *engine->submit(constrained(5, 1, of_regex("(ab|cde){4}")));
  drain(*engine);
  EXPECT_EQ(tokens_of(*free), tokens_of(*other));
  EXPECT_GE(text_of(*bound).size(), 8u);
}

// The draft follows constraints and budgets by copies: the target as its own draft is always right, and no answer
// is another one.
TEST(Constraints, HoldUnderADraftModel) {
  EngineOptions o = options(3);
  auto plain = make_engine(o);
  o.spec = SpecMode::kDraft, o.spec_always = true;
  o.draft.file = model(false);
  auto drafts = make_engine(o);
  const auto schema = of_schema(kSchema), regex = of_regex("(ab|cde)*[0-9]{3}-");
  for (int i = 0; i < 12; ++i) {
    Request r = request(i, 30, 90, i % 2 ? 0.8 : 0);
    r.ignore_eos = false;
    if (i % 3 == 0) r.constraint = schema;
    if (i % 3 == 1) r.constraint = regex;
    if (i % 3 == 2)
      r.reasoning = ReasoningBudget{.tokens = 9, .begin = {11}, .end = {12, 13}, .inside = true};
    r.choices = i % 4 == 0 ? 3 : 1;
    auto expected = *plain->submit_choices(r);
    drain(*plain);
    auto got = *drafts->submit_choices(r);
    drain(*drafts);
    for (std::size_t c = 0; c < got.size(); ++c) {
      EXPECT_EQ(tokens_of(*got[c]), tokens_of(*expected[c])) << "request " << i;
      const Finish &a = got[c]->wait(), &b = expected[c]->wait();
      EXPECT_EQ(a.reason, b.reason);
      EXPECT_EQ(a.stop_token, b.stop_token);
      EXPECT_EQ(a.account.usage.completion_tokens, b.account.usage.completion_tokens);
      EXPECT_GT(a.account.drafted, 0);
      // Where nothing can follow, the last guess saves no token.
      EXPECT_LE(a.account.drafted, a.account.accepted + 1) << "request " << i;
    }
  }
}

}  // namespace
}  // namespace vitrine
