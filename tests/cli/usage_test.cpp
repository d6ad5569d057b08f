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
      generate(kLlama, {"--backend", "abacus"}),
      generate(kLlama, {"--samplers", "top_k,astrology"}),
      generate(kLlama, {"--preset", "haiku"}),
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
  expect_refused(generate(kLlama, {"--device", "7"}), {"device", "7"});
  expect_refused(generate(kLlama, {"--ctx", "4096"}), {"4096", "128"});
  expect_refused(generate(kLlama, {"--page-size", "17"}), {"page size", "17"});
  expect_refused(generate(kLlama, {"--logit-bias", "5"}), {"--logit-bias", "ID:BIAS"});
  expect_refused(generate(kLlama, {"--logit-bias", "96:1"}), {"96", "95"});
}

}  // namespace
}  // namespace vitrine::test
