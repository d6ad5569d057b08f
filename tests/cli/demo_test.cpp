// The models that are part of the program.
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "cli/program.h"

namespace vitrine::test {
namespace {

struct Fixed {
  const char* prompt;
  const char* text;
};
// Greedy answers in which the best token leads by at least 0.15 in log probability (0.6 in the
// first two), the end included: more than any arithmetic of ours is off.
constexpr Fixed kFixed[] = {
    {"<|im_start|>user\nWhat is a tokenizer?<|im_end|>\n<|im_start|>assistant\n",
     "A tokenizer turns text into token ids, and token ids back into text."},
    {"<|im_start|>user\nWhat is attention?<|im_end|>\n<|im_start|>assistant\n",
     "Attention lets each token look at the earlier tokens and take what it needs from them."},
    {"The King of France",
     ", and the King of France, was a man of the world, and he was a man of the world. He"},
};

TEST(Demo, GreedyAnswersAreTheSameOnEveryBackend) {
  for (const Fixed& f : kFixed)
    for (std::vector<std::string> backend :
         {std::vector<std::string>{"--backend", "ref"}, {"--backend", "cpu"}, {"--isa", "avx2"}}) {
      std::vector<std::string> args{
          "generate",      "demo", "--prompt", f.prompt, "--parse-special",
          "--temperature", "0",    "-n",       "48"};
      bool raw = f.prompt[0] != '<';
      if (raw) args.back() = "24";
      args.insert(args.end(), backend.begin(), backend.end());
      json::object answer = vitrine_json(args);
      EXPECT_EQ(answer["text"].as_string(), f.text) << backend[1];
      EXPECT_EQ(answer["finish_reason"].as_string(), raw ? "length" : "stop");
    }
}

TEST(Demo, ChatsThroughItsOwnTemplate) {
  json::object chat =
      vitrine_json({"template", "demo", "--prompt", "What is a tokenizer?", "--json"});
  EXPECT_EQ(chat["template"].as_string(), "GGUF metadata");
  EXPECT_THAT(std::string(chat["prompt"].as_string()), testing::EndsWith(kFixed[0].prompt));
  Exit run = vitrine({"run", "demo", "What is a tokenizer?", "--temperature", "0"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, std::string(kFixed[0].text) + "\n");
}

TEST(Demo, IsListedAndFoundByNameFromAnyFolder) {
  json::object list = vitrine_json({"models"});
  std::vector<std::string> names;
  for (const json::value& m : list["models"].as_array())
    if (m.at("where").as_string() == "built in") names.emplace_back(m.at("name").as_string());
  EXPECT_THAT(names, testing::ElementsAre("demo", "draft"));
  json::object info = vitrine_json({"inspect", "draft"});
  EXPECT_EQ(info["architecture"].as_string(), "llama");
}

TEST(Demo, AModelsFolderGivesNames) {
  TempFolder folder;
  folder.write("mine.gguf", read_text(std::string(VT_FIXTURES) + "/../../models/draft.gguf"));
  ::setenv("VITRINE_MODELS", folder.path().c_str(), 1);
  json::object info = vitrine_json({"inspect", "mine"});
  ::unsetenv("VITRINE_MODELS");
  EXPECT_EQ(info["architecture"].as_string(), "llama");
  expect_refused({"inspect", "mine"}, {"mine"});
}

TEST(Bench, TimesTheTokenizer) {
  TempFolder folder;
  folder.write("text", "The old man sat by the door.\n");
  const std::string text = folder.path("text");
  json::object a = vitrine_json({"bench", "demo", "--tokenizer", text, "-r", "2"});
  EXPECT_EQ(a.at("bytes").to_number<int>(), 29);
  EXPECT_GT(a.at("tokens").to_number<int>(), 0);
  for (const char* field : {"load_ms", "first_mb_s", "again_mb_s", "load_and_first_mb_s"})
    EXPECT_GT(a.at(field).to_number<double>(), 0) << field;
  Exit e = vitrine({"bench", "demo", "--tokenizer", text, "-r", "1"});
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_THAT(e.out, testing::HasSubstr("MB/s"));
  expect_refused({"bench", "demo", "--tokenizer", "/no/such/file"}, {"/no/such/file"});
}

TEST(Perplexity, IsThatOfTheLogits) {
  TempFolder folder;
  std::string text =
      "The old man sat by the door. \"It is late,\" he said, and looked at the sea. <|endoftext|>";
  for (int i = 0; i < 3; ++i) text += text;
  folder.write("text", text);
  json::object whole = vitrine_json({"perplexity", "demo", folder.path("text"), "--window", "64"});
  EXPECT_EQ(whole["bytes"].as_int64(), static_cast<std::int64_t>(text.size()));
  // The same from every position's logits, by another command.
  json::object same =
      vitrine_json({"compare", "demo", "demo", folder.path("text"), "--window", "64"});
  EXPECT_NEAR(same["bits_per_byte"].as_double(), whole["bits_per_byte"].as_double(), 1e-4);
  EXPECT_EQ(same["positions"].as_int64(), whole["tokens"].as_int64());
  EXPECT_EQ(same["top1_agreement"].to_number<double>(), 1);
  EXPECT_NEAR(same["kl_nats"].as_object()["mean"].to_number<double>(), 0, 1e-9);
  // Longer windows and parsed markers predict better; the draft predicts worse.
  json::object longer = vitrine_json(
      {"perplexity", "demo", folder.path("text"), "--window", "512", "--parse-special"});
  EXPECT_LT(longer["bits_per_byte"].as_double(), whole["bits_per_byte"].as_double());
  json::object draft =
      vitrine_json({"compare", "draft", "demo", folder.path("text"), "--window", "64"});
  EXPECT_GT(draft["kl_nats"].as_object()["mean"].as_double(), 0.01);
  EXPECT_LT(draft["top1_agreement"].as_double(), 1);
  EXPECT_GT(draft["top1_agreement"].as_double(), 0.2);
}

// Saved logits stand for the model that gave them, on either side.
TEST(Compare, TakesSavedLogits) {
  TempFolder folder;
  folder.write("text", "The old man sat by the door. \"It is late,\" he said, and looked.");
  const std::string text = folder.path("text"), saved = folder.path("saved");
  json::object whole = vitrine_json(
      {"perplexity", "demo", text, "--window", "16", "--save-logits", saved, "--backend", "cpu"});
  json::object models =
      vitrine_json({"compare", "draft", "demo", text, "--window", "16", "--backend", "cpu"});
  json::object reference = vitrine_json({"compare", "draft", saved, "--backend", "cpu"});
  EXPECT_EQ(models, reference);
  EXPECT_NEAR(reference["reference_bits_per_byte"].as_double(), whole["bits_per_byte"].as_double(),
              1e-6);
  json::object swapped = vitrine_json({"compare", saved, "draft", "--backend", "cpu"});
  EXPECT_EQ(swapped["bits_per_byte"], reference["reference_bits_per_byte"]);
  json::object same = vitrine_json({"compare", saved, saved});
  EXPECT_EQ(same["kl_nats"].as_object()["max"].to_number<double>(), 0);
  // Another backend is near, and not the same.
  json::object exact = vitrine_json({"compare", "demo", saved, "--backend", "ref"});
  EXPECT_GT(exact["kl_nats"].as_object()["mean"].to_number<double>(), 0);
  EXPECT_LT(exact["kl_nats"].as_object()["mean"].to_number<double>(), 0.02);

  expect_refused({"compare", "demo", saved, text}, {"its own text"});
  expect_refused({"compare", "demo", "draft"}, {"text file"});
  expect_refused({"compare", fixture("llama"), saved}, {"96", "6144"});
  vitrine_json(
      {"perplexity", "demo", text, "--window", "8", "--save-logits", folder.path("other")});
  expect_refused({"compare", saved, folder.path("other")}, {"different texts"});
  expect_refused({"perplexity", "demo", text, "--save-logits", "/no/such/folder/file"},
                 {"cannot be written"});
}

TEST(Compare, RefusesBrokenFilesOfLogits) {
  TempFolder folder;
  folder.write("text", "The old man sat by the door.");
  const std::string saved = folder.path("saved");
  vitrine_json({"perplexity", "demo", folder.path("text"), "--save-logits", saved});
  const std::string good = read_text(saved);
  auto refused = [&](std::string bytes, const char* what) {
    folder.write("bad", bytes);
    expect_refused({"compare", "demo", folder.path("bad")}, {"bad", what});
  };
  auto with_word = [&](std::size_t at, std::uint32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  refused("neither", "a model and a file of logits");
  refused("", "a model and a file of logits");
  refused(good.substr(0, 20), "VTLOGITS");
  refused(good.substr(0, good.size() - 4), "are left");
  refused(good.substr(0, 34), "ends before window 0");
  refused(good + "more", "follow the last");
  refused(with_word(8, 2), "version 2");
  refused(with_word(12, 0), "vocabulary");
  refused(with_word(12, 0x7FFFFFFF), "vocabulary");
  refused(with_word(16, 0), "follow the last");
  refused(with_word(16, 0xFFFFFFFF), "ends before window 1");
  refused(with_word(32, 1), "1 tokens");
  refused(with_word(32, 0xFFFFFFFF), "tokens");
  refused(with_word(40, 6144), "6144");
  folder.write("bad", with_word(good.size() - 4, 0x7FC00000));
  expect_refused({"compare", "demo", folder.path("bad")}, {"NaN"});
  folder.write("bad", with_word(good.size() - 4, 0x7F800000));
  expect_refused({"compare", "demo", folder.path("bad")}, {"no finite divergence"});
}

TEST(Perplexity, RefusesWhatItCannotScore) {
  TempFolder folder;
  folder.write("empty", "");
  expect_refused({"perplexity", "demo", folder.path("empty")}, {"no token"});
  expect_refused({"perplexity", "demo", folder.path("absent")}, {"cannot be read"});
  folder.write("text", "some words");
  expect_refused({"perplexity", "demo", folder.path("text"), "--window", "4096"}, {"4096", "2048"});
  expect_refused({"compare", "demo", fixture("llama"), folder.path("text")}, {"tokenizer"});
}

// Guesses change how long it takes, never what is said, at any temperature.
TEST(Demo, SpeculationChangesNoToken) {
  for (const char* temperature : {"0", "0.8"})
    for (const char* spec : {"ngram", "suffix", "auto"}) {
      auto tokens = [&](const char* mode) {
        json::object out =
            vitrine_json({"generate", "demo", "--prompt",
                          "A fox and a lantern. A fox and a lantern. A fox", "--temperature",
                          temperature, "--seed", "5", "-n", "150", "--ignore-eos", "--spec", mode});
        return to_json(out.at("tokens"));
      };
      EXPECT_EQ(tokens(spec), tokens("off")) << spec << " " << temperature;
    }
}

// --- its draft

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Demo, AnswersTheSameWithItsDraft) {
  for (const char* temperature : {"0", "0.8"}) {
    const std::vector<std::string> args{"generate",        "demo",   "--prompt", kFixed[0].prompt,
                                        "--parse-special", "--seed", "5",        "--temperature",
                                        temperature,       "-n",     "60"};
    const json::object plain = vitrine_json(args);
    for (const std::vector<std::string>& spec :
         {std::vector<std::string>{"--spec", "draft"},
          {"--spec", "auto"},
          {"--draft", "draft"},
          {"--spec", "draft", "--draft", "draft", "--spec-tokens", "3"},
          {"--draft", "demo", "--backend", "ref"}}) {
      if (spec.back() == "ref" && temperature[1] != 0) continue;
      const json::object drafted = vitrine_json(with(args, spec));
      EXPECT_EQ(drafted.at("text"), plain.at("text")) << spec.back();
      EXPECT_EQ(drafted.at("finish_reason"), plain.at("finish_reason"));
      EXPECT_EQ(drafted.at("usage"), plain.at("usage"));
    }
  }
}

TEST(Demo, TheDraftIsInThePlan) {
  const json::object plan = vitrine_json({"inspect", "demo", "--spec", "auto"});
  const json::value& memory = plan.at("memory");
  EXPECT_GT(memory.at("draft").at("kv_bytes").to_number<std::int64_t>(), 0);
  EXPECT_GT(memory.at("draft").at("total_bytes").to_number<std::int64_t>(), 0);
  const json::object off = vitrine_json({"inspect", "demo"});
  EXPECT_TRUE(off.at("memory").at("draft").is_null());
  EXPECT_EQ(memory.at("total_bytes").to_number<std::int64_t>(),
            off.at("memory").at("total_bytes").to_number<std::int64_t>() +
                memory.at("draft").at("total_bytes").to_number<std::int64_t>());
  const Exit shown = vitrine({"inspect", "demo", "--draft", "draft"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::HasSubstr("draft model"));
}

TEST(Demo, ADraftThatCannotBeUsedIsRefused) {
  const std::vector<std::string> demo{"generate", "demo", "--prompt", "a", "-n", "1"};
  for (const char* spec : {"off", "ngram", "suffix"})
    expect_refused(with(demo, {"--spec", spec, "--draft", "draft"}), {"--draft", spec, "auto"});
  expect_refused(with(demo, {"--draft", "nothing-there"}), {"--draft", "nothing-there"});
  const std::string other = fixture("llama");
  expect_refused({"generate", other, "--ids", "5", "-n", "1", "--spec", "draft"},
                 {"--draft MODEL"});
  expect_refused(with(demo, {"--draft", other}), {"--draft", "llama", "demo"});
  TempFolder folder;
  std::string bytes = read_text(std::string(VT_FIXTURES) + "/../../models/draft.gguf");
  const std::size_t at = bytes.find("<|im_start|>");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = 'I';
  folder.write("other.gguf", bytes);
  expect_refused(with(demo, {"--draft", folder.path("other.gguf")}),
                 {"--draft", "token", "<|Im_start|>", "<|im_start|>", "same bytes"});
}

TEST(Demo, BenchComparesWithAndWithout) {
  const json::object report = vitrine_json({"bench", "demo", "--spec", "draft", "-n", "16", "-r",
                                            "2", "--temperature", "0.8", "--sequences", "2"});
  EXPECT_GT(report.at("ratio").to_number<double>(), 0);
  EXPECT_EQ(report.at("pairs").as_array().size(), 2u);
  EXPECT_EQ(report.at("tokens").to_number<int>(), 32);
  EXPECT_GE(report.at("drafted").to_number<int>(), report.at("accepted").to_number<int>());
  EXPECT_GT(report.at("tok_s_with").to_number<double>(), 0);
  const Exit text = vitrine({"bench", "demo", "--spec", "suffix", "-n", "8", "-r", "1"});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* word : {"without", "with", "ratio", "acceptance"})
    EXPECT_THAT(text.out, testing::HasSubstr(word));
  expect_refused({"bench", "demo", "--spec", "draft", "--prompt-file", "/nothing/there"},
                 {"there"});
}

}  // namespace
}  // namespace vitrine::test
