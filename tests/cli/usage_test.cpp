// The command line itself: help, wrong usage, values that are refused.
#include "cli/program.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;

const std::string kLlama = fixture("llama");

TEST(Usage, HelpIsNoError) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{}, {"--help"}, {"generate", "--help"}}) {
    Exit e = vitrine(args);
    EXPECT_EQ(e.code, 0);
    EXPECT_THAT(e.out, HasSubstr("vitrine"));
    EXPECT_EQ(e.err, "");
  }
  EXPECT_THAT(vitrine({"--version"}).out, HasSubstr("vitrine "));
}

TEST(Usage, WrongUsageIsTwo) {
  const std::vector<std::string> wrong[] = {
      {"frobnicate"},
      {"generate"},
      {"generate", kLlama},
      {"generate", kLlama, "--ids", "5", "--prompt", "a"},
      {"generate", kLlama, "--ids", "5", "--frobnicate"},
      {"generate", kLlama, "--ids", "5", "--max-tokens", "many"},
      {"generate", kLlama, "--ids", "5", "--temperature", "warm"},
      {"generate", kLlama, "--ids", "5", "--seed", "-1"},
      {"generate", kLlama, "--ids", "5", "--seed", "18446744073709551616"},
      {"generate", kLlama, "--ids", "5", "--seed", "1.5"},
      {"logits", kLlama},
      {"tokenize", kLlama},
      {"detokenize", kLlama},
      {"inspect"},
      {"bench", kLlama, "-p", "0"},
      {"bench", kLlama, "-n", "-3"},
      {"bench"},
      {"bench", kLlama, "--random", "llama-1b:bf16"},
      {"run"},
      {"load", "--repeat", "2"},                        // needs --serve
      {"load", "--serve", "demo", "--url", "http://"},  // exclude each other
      {"embed", kLlama, "a", "--file", "b"},
      {"serve", "--header-timeout", "0"},
  };
  for (const auto& args : wrong) {
    Exit e = vitrine(args);
    EXPECT_EQ(e.code, 2) << join({static_cast<int>(&args - wrong)}) << e.err;
    EXPECT_EQ(e.out, "");
    EXPECT_THAT(e.err, HasSubstr("error: "));
    EXPECT_THAT(e.err, HasSubstr("--help"));
  }
}

TEST(Usage, BadValuesAreOneAndNamed) {
  expect_refused({"inspect", "no/such/model"}, {"no/such/model"});
  expect_refused({"generate", "no/such.gguf", "--ids", "5"}, {"no/such.gguf"});
  expect_refused({"tokenize", "no/such", "--text", "a"}, {"no/such"});
  expect_refused(generate(kLlama, {"--backend", "abacus"}), {"abacus", "ref", "cpu"});
  expect_refused(generate(kLlama, {"--isa", "mmx"}), {"mmx", "avx2"});
  expect_refused(generate(kLlama, {"--kv-type", "q4_0"}), {"--kv-type", "q4_0", "f16"});
  expect_refused(generate(kLlama, {"--threads", "-2"}), {"threads", "-2"});
  expect_refused(generate(kLlama, {"--threads", "5000"}), {"threads", "5000", "1024"});
  expect_refused(generate(kLlama, {"--device", "7"}), {"device", "7"});
  expect_refused(generate(kLlama, {"--ctx", "-1"}), {"context", "-1"});
  expect_refused(generate(kLlama, {"--ctx", "4096"}), {"4096", "128"});
  expect_refused(generate(kLlama, {"--sequences", "-1"}), {"sequences", "-1"});
  expect_refused(generate(kLlama, {"--step-tokens", "0"}), {"step tokens", "0"});
  expect_refused(generate(kLlama, {"--page-size", "17"}), {"page size", "17"});
  expect_refused(generate(kLlama, {"--max-tokens", "-5"}), {"max_tokens", "-5"});
  expect_refused(generate(kLlama, {"--temperature", "-1"}), {"temperature", "-1"});
  expect_refused(generate(kLlama, {"--top-p", "1.5"}), {"top_p", "1.5"});
  expect_refused(generate(kLlama, {"--preset", "haiku"}), {"haiku", "creative"});
  expect_refused(generate(kLlama, {"--samplers", "top_k,astrology"}), {"astrology"});
  expect_refused(generate(kLlama, {"--logit-bias", "5"}), {"--logit-bias", "ID:BIAS"});
  expect_refused(generate(kLlama, {"--logit-bias", "96:1"}), {"96", "95"});
}

}  // namespace
}  // namespace vitrine::test
