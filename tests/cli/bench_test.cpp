// bench and devices from the outside.
#include "cli/program.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;

const std::string kLlama = fixture("llama");

TEST(Bench, HasEveryFieldAndTheSameHash) {
  std::string hash;
  for (const char* threads : {"1", "2"}) {
    json::object a =
        vitrine_json({"bench", kLlama, "-p", "32", "-n", "4", "-r", "1", "--threads", threads});
    for (const char* field : {"tok_s", "gflop_s", "share_of_peak"})
      EXPECT_GT(a.at("prefill").at(field).to_number<double>(), 0) << field;
    for (const char* field : {"tok_s", "gb_s", "share_of_peak"})
      EXPECT_GT(a.at("decode").at(field).to_number<double>(), 0) << field;
    for (const char* field : {"read_gb_s", "gflop_s"})
      EXPECT_GT(a.at("peak").at(field).to_number<double>(), 0) << field;
    std::string found(a.at("logits_hash").as_string());
    EXPECT_EQ(found.size(), 16u);
    if (hash.empty()) hash = found;
    EXPECT_EQ(found, hash);
  }
  Exit e = vitrine({"bench", kLlama, "-p", "8", "-n", "2", "-r", "1"});
  EXPECT_EQ(e.code, 0) << e.err;
  for (const char* word : {"prefill", "decode", "tok/s", "peak", "logits"})
    EXPECT_THAT(e.out, HasSubstr(word));
  expect_refused({"bench", kLlama, "-p", "512", "-n", "4"}, {"516", "128"});
}

TEST(Bench, TellsWhereTheTimeGoes) {
  json::object a = vitrine_json(
      {"bench", kLlama, "-p", "32", "-n", "4", "-r", "1", "--backend", "cpu", "--ops"});
  bool attention = false;
  for (const json::value& row : a.at("ops").as_array()) {
    EXPECT_GT(row.at("prompt_ms").to_number<double>(), 0) << row;
    EXPECT_GT(row.at("decode_step_ms").to_number<double>(), 0) << row;
    attention = attention || row.at("op").as_string() == "attend";
  }
  EXPECT_TRUE(attention);
  Exit e = vitrine({"bench", kLlama, "-p", "8", "-n", "2", "-r", "1", "--backend", "cpu", "--ops"});
  EXPECT_EQ(e.code, 0) << e.err;
  for (const char* word : {"a prompt, ms", "a decode step, ms", "attend"})
    EXPECT_THAT(e.out, HasSubstr(word));
}

TEST(Bench, RunsSeveralSequencesAndRandomWeights) {
  json::object a = vitrine_json(
      {"bench", kLlama, "-p", "16", "-n", "4", "-r", "1", "--sequences", "3", "--backend", "cpu"});
  EXPECT_EQ(a.at("sequences").to_number<int>(), 3);
  EXPECT_GT(a.at("decode").at("tok_s").to_number<double>(), 0);
  expect_refused({"bench", "--random", "llama-8b:q3"}, {"q3", "llama-1b", "q4_k_m"});
}

// How many guesses a step has is a matter of measured times; the text is not.
TEST(Bench, SimulatesGuesses) {
  const std::vector<std::string> run{
      "bench", kLlama, "-p", "16", "-n", "60", "-r", "2", "--backend", "cpu", "--spec-tokens", "4"};
  auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> out = run;
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  for (const char* acceptance : {"0", "0.8", "1"}) {
    json::object a = vitrine_json(with({"--spec-acceptance", acceptance}));
    const json::object& s = a.at("speculation").as_object();
    EXPECT_TRUE(s.at("simulated").as_bool());
    EXPECT_EQ(s.at("acceptance").to_number<double>(), std::stod(acceptance));
    EXPECT_EQ(s.at("spec_tokens").to_number<int>(), 4);
    EXPECT_EQ(s.at("same_tokens_share").to_number<double>(), 1);
    for (const char* field : {"off_tok_s", "on_tok_s", "ratio"})
      EXPECT_GT(s.at(field).to_number<double>(), 0) << field;
    EXPECT_LE(s.at("guesses_per_step").to_number<double>(), 4);
  }
  const json::object a = vitrine_json(with({"--spec-acceptance", "1", "--spec-always"}));
  const json::object& s = a.at("speculation").as_object();
  EXPECT_GT(s.at("guesses_per_step").to_number<double>(), 3.5);
  EXPECT_GT(s.at("tokens_per_step").to_number<double>(), 4.5);
  EXPECT_EQ(s.at("right_share").to_number<double>(), 1);
  EXPECT_EQ(s.at("same_tokens_share").to_number<double>(), 1);
  EXPECT_FALSE(vitrine_json(run).contains("speculation"));
  expect_refused(with({"--spec-always"}), {"--spec-acceptance"});
  Exit e = vitrine(with({"--spec-acceptance", "0.5"}));
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_THAT(e.out, HasSubstr("speculation, simulated"));
  expect_refused(with({"--spec-acceptance", "0.5", "--spec", "ngram"}), {"ngram", "off"});
}

// --- devices

TEST(Devices, TellsWhatCanComputeHere) {
  json::object a = vitrine_json({"devices"});
  bool cpu = false, chosen = false;
  for (const json::value& b : a.at("backends").as_array()) {
    bool usable = b.at("usable").as_bool();
    cpu = cpu || (b.at("backend").as_string() == "cpu" && usable);
    EXPECT_EQ(usable, b.as_object().contains("found"));
    EXPECT_EQ(!usable, b.as_object().contains("reason"));
    chosen = chosen || (usable && b.at("auto").as_bool());
  }
  EXPECT_TRUE(cpu);
  EXPECT_TRUE(chosen);
}

}  // namespace
}  // namespace vitrine::test
