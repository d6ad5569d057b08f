#include "load/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/report.h"

namespace vitrine::load {
namespace {

using testing::HasSubstr;

TEST(Percentile, InterpolatesBetweenSortedValues) {
  std::vector<double> x{10, 20, 30, 40, 50};
  EXPECT_DOUBLE_EQ(percentile(x, 0), 10);
  EXPECT_DOUBLE_EQ(percentile(x, 0.5), 30);
  EXPECT_DOUBLE_EQ(percentile(x, 0.95), 48);
  EXPECT_DOUBLE_EQ(percentile(x, 1), 50);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Percentile, SpreadOfAHundred) {
  std::vector<double> x;
  for (int i = 100; i >= 0; --i) x.push_back(i);
  Spread s = spread_of(x);
  EXPECT_DOUBLE_EQ(s.mean, 50);
  EXPECT_DOUBLE_EQ(s.p50, 50);
  EXPECT_DOUBLE_EQ(s.p95, 95);
  EXPECT_DOUBLE_EQ(s.p99, 99);
}

RequestTrace answered(double scheduled, double first, double last, int tokens) {
  RequestTrace r;
  r.outcome = Outcome::kOk;
  r.status = 200;
  r.scheduled = scheduled;
  r.sent = scheduled + 0.001;
  r.first = first;
  r.last = last;
  r.end = last + 0.01;
  r.asked_tokens = r.output_tokens = tokens;
  r.prompt_tokens = 100;
  r.cached_tokens = 25;
  return r;
}

RequestTrace refused(Outcome outcome, int status) {
  RequestTrace r;
  r.outcome = outcome;
  r.status = status;
  r.end = 0.5;
  r.error = "because";
  return r;
}

LoadTrace hand_made() {
  LoadTrace trace;
  trace.requests = {answered(0, 0.1, 1.1, 11),   // TTFT 100 ms, TPOT 100 ms
                    answered(1, 1.3, 1.7, 5),    // 300, 100
                    answered(2, 2.05, 3.05, 6),  // 50, 200
                    answered(2.5, 2.6, 2.6, 1),  // 100, one token only
                    refused(Outcome::kRejected, 429), refused(Outcome::kHttpError, 503),
                    refused(Outcome::kBroken, 200)};
  trace.requests[0].gaps = {0.1F, 0.3F};
  trace.wall_s = 4;
  trace.cpu_s = 0.2;
  return trace;
}

TEST(Summary, OfAHandMadeTrace) {
  Summary s = summarize(hand_made(), {});
  EXPECT_EQ(s.requests, 7);
  EXPECT_EQ(s.ok, 4);
  EXPECT_EQ(s.rejected, 1);
  EXPECT_EQ(s.failed, 2);
  EXPECT_THAT(s.outcomes, testing::UnorderedElementsAre(
                              std::pair("ok", 4), std::pair("rejected (429)", 1),
                              std::pair("http_error (503)", 1), std::pair("broken", 1)));
  EXPECT_EQ(s.first_error, "because");
  EXPECT_EQ(s.output_tokens, 23);
  EXPECT_EQ(s.prompt_tokens, 400);
  EXPECT_EQ(s.cached_tokens, 100);
  EXPECT_DOUBLE_EQ(s.requests_s, 1);
  EXPECT_DOUBLE_EQ(s.output_tok_s, 5.75);
  EXPECT_DOUBLE_EQ(s.goodput_s, 1);
  EXPECT_NEAR(s.ttft_ms.mean, 137.5, 1e-6);
  EXPECT_NEAR(s.ttft_ms.p50, 100, 1e-6);
  EXPECT_NEAR(s.tpot_ms.mean, 400.0 / 3, 1e-6) << "the answer of one token has no TPOT";
  EXPECT_NEAR(s.itl_ms.mean, 200, 1e-4);
  EXPECT_NEAR(s.e2e_ms.p50, (710.0 + 1060) / 2, 1e-6);
  EXPECT_NEAR(s.late_ms_p99, 1, 1e-6);
  EXPECT_DOUBLE_EQ(s.client_cpu, 0.05);
}

TEST(Summary, GoodputNeedsBothLimits) {
  EXPECT_DOUBLE_EQ(summarize(hand_made(), {200, {}}).goodput_s, 0.75);
  EXPECT_DOUBLE_EQ(summarize(hand_made(), {{}, 150}).goodput_s, 0.75);
  Summary both = summarize(hand_made(), {200, 150});
  EXPECT_DOUBLE_EQ(both.goodput_s, 0.5);
  EXPECT_DOUBLE_EQ(both.goodput_share, 2.0 / 7);
}

TEST(Summary, AnswersShorterThanAskedForAreCounted) {
  LoadTrace trace = hand_made();
  trace.requests[0].asked_tokens = 12;
  EXPECT_EQ(summarize(trace, {}).short_answers, 1);
}

TEST(Summary, OfNothing) {
  Summary s = summarize({}, {});
  EXPECT_EQ(s.requests, 0);
  EXPECT_EQ(s.output_tok_s, 0);
  EXPECT_THAT(table(s), HasSubstr("TTFT"));
}

TEST(Report, ComparesMediansAndDivides) {
  Summary fast = summarize(hand_made(), {}), slow = fast, odd = fast;
  slow.output_tok_s = fast.output_tok_s / 2;
  odd.output_tok_s = 1000;
  std::vector<Column> columns{{"continuous", {fast, odd, fast}}, {"static", {slow}}};
  std::string text = comparison_table(columns);
  std::size_t at = text.find("output tok/s");
  ASSERT_NE(at, std::string::npos);
  std::string row = text.substr(at, text.find('\n', at) - at);
  EXPECT_THAT(row, HasSubstr("5.75"));
  EXPECT_THAT(row, HasSubstr("2.88"));
  EXPECT_THAT(row, testing::EndsWith("2.00"));
  json::object out = comparison_json(columns);
  EXPECT_EQ(out["policies"].as_array()[0].at("runs").as_array().size(), 3);
  EXPECT_DOUBLE_EQ(out["ratio_of_first_to"].at("static").at("output tok/s").as_double(), 2);
}

struct Frames {
  RequestTrace trace;
  CompletionStream stream{trace};
  Frames() { trace.status = 200; }
};

constexpr const char* kText = R"(data: {"choices":[{"text":"a","finish_reason":null}]})"
                              "\n\n";

TEST(CompletionStream, TimesAndUsage) {
  Frames f;
  f.stream.feed(kText, 1);
  f.stream.feed(kText, 1.5);
  f.stream.feed("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n", 1.75);
  f.stream.feed(
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
      "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n",
      2);
  f.stream.finish(2.5);
  EXPECT_EQ(f.trace.outcome, Outcome::kOk);
  EXPECT_EQ(f.trace.first, 1);
  EXPECT_EQ(f.trace.last, 1.5);
  EXPECT_THAT(f.trace.gaps, testing::ElementsAre(0.5F));
  EXPECT_EQ(f.trace.end, 2.5);
  EXPECT_EQ(f.trace.output_tokens, 3);
  EXPECT_EQ(f.trace.prompt_tokens, 7);
  EXPECT_EQ(f.trace.cached_tokens, 4);
}

TEST(CompletionStream, WithoutUsageFramesAreCounted) {
  Frames f;
  f.stream.feed(std::string(kText) + kText + "data: [DONE]\n\n", 1);
  f.stream.finish(1);
  EXPECT_EQ(f.trace.output_tokens, 2);
}

TEST(CompletionStream, WhatWentWrongIsTold) {
  for (auto [text, outcome] :
       {std::pair{"data: {\"error\":{\"message\":\"oh\"}}\n\n", Outcome::kStreamError},
        {"data: {\"choices\":[{\"te", Outcome::kBroken},
        {"data: {nonsense}\n\ndata: [DONE]\n\n", Outcome::kBroken},
        {"data: [1]\n\ndata: [DONE]\n\n", Outcome::kBroken},
        {"data: {\"choices\":7,\"usage\":[]}\n\n", Outcome::kBroken},
        {"data: [DONE]\n\ndata: {", Outcome::kBroken},
        {"", Outcome::kBroken}}) {
    Frames f;
    f.stream.feed(text, 1);
    f.stream.finish(1);
    EXPECT_EQ(f.trace.outcome, outcome) << text;
    EXPECT_NE(f.trace.error, "") << text;
  }
}

}  // namespace
}  // namespace vitrine::load
