#include "server/answer/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

namespace vitrine {
namespace {

using ::testing::HasSubstr;

constexpr double kBounds[] = {0.1, 1, 10};

Metrics sample() {
  Metrics m;
  m.time_to_first_token = Histogram(kBounds);
  for (double x : {0.05, 0.5, 0.7, 100.0}) m.time_to_first_token.add(x);
  m.running = 3, m.waiting = 2, m.kv_usage = 0.25;
  m.generation_tokens = 123456789;
  m.drafts = 4, m.drafted_tokens = 20, m.accepted_by_place = {3, 2, 1};
  m.by_source[static_cast<int>(GuessSource::kDraft)] = {4, 20, 6, 0.5, -0.25};
  m.speculates = true;
  m.finished[static_cast<int>(FinishReason::kTimeout)] = 7;
  return m;
}

TEST(MetricsText, HistogramsAreCumulative) {
  std::string text = metrics_text(sample(), {}, "m");
  EXPECT_THAT(
      text, HasSubstr("# TYPE vitrine:time_to_first_token_seconds histogram\n"
                      "vitrine:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"0.1\"} 1\n"
                      "vitrine:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"1\"} 3\n"
                      "vitrine:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"10\"} 3\n"
                      "vitrine:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 4\n"
                      "vitrine:time_to_first_token_seconds_sum{model_name=\"m\"} 101.25\n"
                      "vitrine:time_to_first_token_seconds_count{model_name=\"m\"} 4\n"));
}

TEST(MetricsText, GaugesCountersAndLabels) {
  HttpCounts http;
  http.connections = 5;
  http.body_bytes = 77, http.answer_bytes = 88, http.refused_by_address = 9;
  std::string text = metrics_text(sample(), http, "a\"b\\c\nd");
  const std::string label = "{model_name=\"a\\\"b\\\\c\\nd\"";
  EXPECT_THAT(text, HasSubstr("vitrine:num_requests_running" + label + "} 3\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:num_requests_waiting" + label + "} 2\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:kv_cache_usage_perc" + label + "} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:generation_tokens_total" + label + "} 123456789\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:spec_decode_num_draft_tokens_total" + label + "} 20\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:spec_decode_num_accepted_tokens_total" + label + "} 6\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:spec_decode_num_accepted_tokens_per_pos_total" + label +
                              ",position=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:spec_decode_active" + label + "} 1\n"));
  for (const char* each :
       {"drafts_total%s 4", "draft_tokens_total%s 20", "accepted_tokens_total%s 6",
        "draft_seconds_total%s 0.5", "lost_seconds%s -0.25"}) {
    std::string line = std::string("vitrine:spec_decode_source_") + each + "\n";
    line.replace(line.find("%s"), 2, label + ",source=\"draft\"}");
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("vitrine:request_success_total" + label +
                              ",finished_reason=\"timeout\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:http_connections" + label + "} 5\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:http_body_bytes" + label + "} 77\n"));
  EXPECT_THAT(text, HasSubstr("vitrine:http_answer_bytes" + label + "} 88\n"));
  EXPECT_THAT(text, HasSubstr("refused_by_address_total" + label + "} 9\n"));
}

// Each sample has a name that HELP and TYPE came before, each name once, each sample once.
TEST(MetricsText, EveryLineIsWellFormed) {
  std::istringstream lines(metrics_text(sample(), {}, "m"));
  std::set<std::string> helped, typed, samples;
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string hash, kind, name;
    if (line.starts_with("#")) {
      words >> hash >> kind >> name;
      EXPECT_TRUE((kind == "HELP" ? helped : typed).insert(name).second) << line;
      continue;
    }
    name = line.substr(0, line.find('{'));
    EXPECT_TRUE(samples.insert(line.substr(0, line.find("} "))).second) << line;
    std::string base = name;
    for (const char* suffix : {"_bucket", "_sum", "_count"})
      if (base.ends_with(suffix) && !typed.contains(base))
        base.resize(base.size() - std::string(suffix).size());
    EXPECT_TRUE(helped.contains(base) && typed.contains(base)) << line;
    std::size_t end = 0;
    std::string value = line.substr(line.find("} ") + 2);
    EXPECT_NO_THROW(std::stod(value, &end));
    EXPECT_EQ(end, value.size()) << line;
  }
  EXPECT_GT(samples.size(), 40u);
}

}  // namespace
}  // namespace vitrine
