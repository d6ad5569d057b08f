// generate, match and logits from the outside: what they print, where, and how they exit.
#include <algorithm>

#include "cli/program.h"
#include "support/golden.h"

namespace vitrine::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kLlama = fixture("llama");

TEST(Generate, HasEveryField) {
  Golden golden = load_golden("llama");
  json::object a = vitrine_json({"generate", kLlama, "--ids", join(golden.ids), "--max-tokens",
                                 "16", "--temperature", "0", "--ignore-eos", "--backend", "ref",
                                 "--kv-type", "f32", "--seed", "7"});
  EXPECT_EQ(tokens_of(a), golden.greedy);
  EXPECT_TRUE(a.at("text").is_null());
  EXPECT_EQ(a.at("finish_reason"), "length");
  EXPECT_EQ(a.at("seed").to_number<int>(), 7);
  const json::object& usage = a.at("usage").as_object();
  EXPECT_EQ(usage.at("prompt_tokens").to_number<int>(), 48);
  EXPECT_EQ(usage.at("completion_tokens").to_number<int>(), 16);
  EXPECT_EQ(usage.at("cached_tokens").to_number<int>(), 0);
  for (const char* timing : {"ttft_ms", "prefill_tok_s", "decode_tok_s"})
    EXPECT_GT(a.at("timings").at(timing).to_number<double>(), 0) << timing;
}

TEST(Generate, PrintsIdsWithoutATokenizer) {
  Exit e = vitrine(generate(kLlama, {"--max-tokens", "3", "--temperature", "0", "--ignore-eos"}));
  EXPECT_EQ(e.code, 0);
  EXPECT_EQ(std::count(e.out.begin(), e.out.end(), ','), 2) << e.out;
  expect_refused({"generate", kLlama, "--prompt", "hello"}, {kLlama, "tokenizer", "--ids"});
  expect_refused({"run", kLlama, "hello"}, {kLlama, "tokenizer", "--ids"});
}

TEST(Generate, StopsAtTheEnd) {
  // Token 2 is the fixture's end token.
  auto args =
      generate(kLlama, {"--max-tokens", "5", "--temperature", "0", "--logit-bias", "2:100"});
  json::object a = vitrine_json(args);
  EXPECT_EQ(a.at("finish_reason"), "stop");
  EXPECT_LE(tokens_of(a).size(), 1u);
  args.push_back("--ignore-eos");
  a = vitrine_json(args);
  EXPECT_EQ(a.at("finish_reason"), "length");
  EXPECT_THAT(tokens_of(a), ElementsAre(2, 2, 2, 2, 2));
}

TEST(Generate, SearchesWithBeams) {
  const std::string model = std::string(VT_FIXTURES) + "/beams/llama";
  const json::object golden = json::parse(read_text(model + "/beams.json")).as_object();
  auto ids = json::value_to<std::vector<std::int32_t>>(golden.at("ids"));
  const json::object& wanted = golden.at("cases").as_array().at(2).as_object();
  ids.resize(wanted.at("prompt").to_number<std::size_t>());
  std::string ends = "3";
  for (int i = 1; i < wanted.at("ends").as_int64(); ++i) ends += "," + std::to_string(3 + i);
  const std::vector<std::string> args{"generate",
                                      model,
                                      "--ids",
                                      join(ids),
                                      "--beams",
                                      "4",
                                      "--eos",
                                      ends,
                                      "--num-return",
                                      "2",
                                      "--length-penalty",
                                      "0.5",
                                      "--early-stopping",
                                      "true",
                                      "--max-tokens",
                                      "24",
                                      "--backend",
                                      "ref",
                                      "--kv-type",
                                      "f32"};
  std::vector<std::string> as_json = args;
  as_json.push_back("--json");
  const json::object a = vitrine_json(as_json);
  const json::array& beams = a.at("beams").as_array();
  ASSERT_EQ(beams.size(), 2u);
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(beams[i].at("tokens"), wanted.at("sequences").at(i));
    EXPECT_NEAR(beams[i].at("score").to_number<double>(),
                wanted.at("scores").at(i).to_number<double>(), 1e-4);
    EXPECT_EQ(beams[i].at("finish_reason"), "stop");
    tokens += beams[i].at("tokens").as_array().size();
  }
  // End tokens are not part of the texts.
  EXPECT_EQ(a.at("usage").at("completion_tokens").to_number<std::size_t>(), tokens - 2);
  const Exit plain = vitrine(args);
  EXPECT_EQ(plain.code, 0);
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), 2) << plain.out;

  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", model, "--ids", "5,6,7"});
    return more;
  };
  expect_refused(with({"--beams", "4", "--num-return", "5"}), {"num_return", "5", "1 to 4"});
  expect_refused(with({"--beams", "4", "--temperature", "0.7"}), {"temperature", "0.7"});
  expect_refused(with({"--beams", "4", "--eos", "9999"}), {"stop_token_ids", "9999"});
  expect_refused(with({"--num-return", "2"}), {"--num-return", "--beams"});
}

TEST(Generate, SeedDecides) {
  std::vector<std::string> flags{"--max-tokens", "24", "--temperature", "1.5", "--ignore-eos"};
  auto with_seed = [&](const std::string& seed) {
    auto args = generate(kLlama, flags);
    args.insert(args.end(), {"--seed", seed});
    return tokens_of(vitrine_json(args));
  };
  auto first = with_seed("1");
  EXPECT_EQ(first.size(), 24u);
  EXPECT_EQ(first, with_seed("1"));
  EXPECT_NE(first, with_seed("2"));
  json::object drawn = vitrine_json(generate(kLlama, flags));
  auto seed = drawn.at("seed").to_number<std::uint64_t>();
  EXPECT_EQ(tokens_of(drawn), with_seed(std::to_string(seed)));
  json::object other = vitrine_json(generate(kLlama, flags));
  EXPECT_NE(other.at("seed"), drawn.at("seed"));
}

TEST(Generate, TakesEverySamplingFlag) {
  json::object a = vitrine_json(generate(kLlama, {"--max-tokens",
                                                  "4",
                                                  "--top-k",
                                                  "20",
                                                  "--top-p",
                                                  "0.9",
                                                  "--min-p",
                                                  "0.01",
                                                  "--typical-p",
                                                  "0.95",
                                                  "--repetition-penalty",
                                                  "1.1",
                                                  "--frequency-penalty",
                                                  "0.2",
                                                  "--presence-penalty",
                                                  "0.1",
                                                  "--temperature",
                                                  "0.8",
                                                  "--seed",
                                                  "3",
                                                  "--ignore-eos"}));
  EXPECT_EQ(tokens_of(a).size(), 4u);
  // top-k 1 is greedy at any temperature.
  auto greedy = vitrine_json(generate(kLlama, {"--temperature", "0", "-n", "6", "--ignore-eos"}));
  auto top1 = vitrine_json(
      generate(kLlama, {"--temperature", "2", "--top-k", "1", "-n", "6", "--ignore-eos"}));
  EXPECT_EQ(tokens_of(greedy), tokens_of(top1));
}

// infill wants texts of tokens, and an end.
TEST(Generate, InfillSaysWhatIsCertainOrEnds) {
  expect_refused(generate(kLlama, {"--infill", "1"}), {"--infill", "tokenizer"});
  expect_refused(generate(kLlama, {"--preset", "infill"}), {"--infill", "tokenizer"});
  TempFolder folder;
  for (const char* name : {"config.json", "model.safetensors"})
    folder.write(name, read_text(kLlama + "/" + name));
  folder.write("tokenizer.json", tiny_tokenizer());
  // Token 24 has 0.69 after these, and nothing much after it.
  for (const char* temperature : {"1", "2"}) {
    json::object a =
        vitrine_json({"generate", folder.path(), "--ids", "5,6,7", "--infill", "1", "--temperature",
                      temperature, "--max-tokens", "9", "--seed", "1"});
    EXPECT_EQ(a.at("finish_reason"), "stop");
    if (temperature[0] == '1') {
      EXPECT_THAT(tokens_of(a), ElementsAre(24));
    } else {
      EXPECT_THAT(tokens_of(a), ElementsAre()) << "0.2 at most, so it ends";
    }
  }
}

TEST(Generate, ContextIsAHardLimit) {
  Golden golden = load_golden("llama");
  std::vector<std::string> args{"generate", kLlama, "--ids", join(golden.ids), "--ignore-eos"};
  auto with_context = [&](const char* context) {
    auto a = args;
    a.insert(a.end(), {"--ctx", context});
    return a;
  };
  expect_refused(with_context("32"), {"48", "32"});
  expect_refused(with_context("48"), {"48"});
  json::object a = vitrine_json(with_context("50"));
  EXPECT_EQ(a.at("finish_reason"), "length");
  EXPECT_EQ(tokens_of(a).size(), 2u);
}

TEST(Generate, RefusesBadIds) {
  for (const char* ids : {"96", "5,-1", "5,96,7"})
    expect_refused({"generate", kLlama, "--ids", ids}, {"95"});
  for (const char* ids : {"5,x", "99999999999", "5,,6", "5;6", "1.5", "5, 6"})
    expect_refused({"generate", kLlama, "--ids", ids}, {"--ids"});
  EXPECT_EQ(vitrine({"generate", kLlama, "--ids", ""}).code, 2);
  expect_refused({"logits", kLlama, "--ids", "96"}, {"96", "95"});
  expect_refused({"logits", kLlama, "--ids", "5,6", "--positions", "2"}, {"2", "0 to 1"});
  expect_refused({"logits", kLlama, "--ids", "5,6", "--positions", "-1"}, {"-1"});
  expect_refused({"logits", kLlama, "--ids", "5,6", "--positions", "x"}, {"--positions"});
}

TEST(Match, TellsLinesApart) {
  TempFolder folder;
  auto file = [&](const char* name, const char* text) {
    folder.write(name, std::string_view(text));
    return folder.path(name);
  };
  const std::string schema = file("s.json", R"({"type":"array","items":{"type":"integer"}})");
  Exit e = vitrine({"match", "--json-schema", schema}, "[1,2]\n[1,]\n[]\n");
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_EQ(e.out, "yes\nno\nyes\n");
  EXPECT_EQ(vitrine({"match", "--choice", "a", "--choice", "b"}, "a\nab\n").out, "yes\nno\n");
  expect_refused({"match", "--regex", "a("}, {"--regex", "("});
  expect_refused({"match", "--grammar", file("g", "root ::= root \"a\" | \"b\"")},
                 {"--grammar", "root"});
  expect_refused({"match", "--json-schema", file("bad.json", "{")}, {"bad.json"});
  expect_refused({"match", "--json-schema", "no/such"}, {"no/such"});
  expect_refused({"match"}, {"constraint"});
  expect_refused(generate(kLlama, {"--regex", "a"}), {"--regex", "tokenizer"});
}

TEST(Logits, AreTheReferences) {
  Golden golden = load_golden("llama");
  json::object a = vitrine_json({"logits", kLlama, "--ids", join(golden.ids), "--positions",
                                 "47,0,13", "--backend", "ref", "--kv-type", "f32"});
  EXPECT_EQ(a.at("vocab").to_number<int>(), 96);
  const json::object& rows = a.at("logits").as_object();
  EXPECT_EQ(rows.size(), 3u);
  for (int position : {0, 13, 47}) {
    auto row = json::value_to<std::vector<float>>(rows.at(std::to_string(position)));
    EXPECT_LT(max_difference({{0, golden.logits.at(position)}}, {{0, row}}), 1e-3);
  }
}

TEST(Logits, GivesAllPositionsAndATable) {
  json::object a = vitrine_json({"logits", kLlama, "--ids", "5,6,7"});
  EXPECT_EQ(a.at("logits").as_object().size(), 3u);
  Exit e = vitrine({"logits", kLlama, "--ids", "5,6,7"});
  EXPECT_EQ(e.code, 0);
  EXPECT_THAT(e.out, HasSubstr("position 2"));
}

TEST(Logits, ThreadsDoNotChangeABit) {
  auto run = [](const char* threads) {
    return vitrine({"logits", kLlama, "--ids", "5,6,7,8,9,10,11", "--threads", threads, "--json"})
        .out;
  };
  std::string one = run("1");
  EXPECT_THAT(one, HasSubstr("\"vocab\":96"));
  EXPECT_EQ(one, run("2"));
  EXPECT_EQ(one, run("3"));
}

}  // namespace
}  // namespace vitrine::test
