// The commands from the outside: what they print, where, and how they exit.
#include <algorithm>

#include "cli/program.h"
#include "support/golden.h"

namespace vitrine::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kLlama = fixture("llama");

std::vector<std::string> generate(const std::string& model, std::vector<std::string> more) {
  std::vector<std::string> args{"generate", model, "--ids", "5,6,7,8"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// --- usage

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

// --- generate

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
  expect_refused({"generate", kLlama, "--ids", ""}, {"empty"});
  expect_refused({"logits", kLlama, "--ids", "96"}, {"96", "95"});
  expect_refused({"logits", kLlama, "--ids", "5,6", "--positions", "2"}, {"2", "0 to 1"});
  expect_refused({"logits", kLlama, "--ids", "5,6", "--positions", "-1"}, {"-1"});
  expect_refused({"logits", kLlama, "--ids", "5,6", "--positions", "x"}, {"--positions"});
}

// --- logits

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

// --- bench

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

// --- tokenizer

class WithTokenizer : public ::testing::Test {
 protected:
  WithTokenizer() {
    model_.copy_from(kLlama);
    model_.write("tokenizer.json", tiny_tokenizer());
    bare_.write("tokenizer.json", tiny_tokenizer());
  }
  TempFolder model_, bare_;  // a model with a tokenizer, and the tokenizer alone
};

TEST_F(WithTokenizer, Tokenizes) {
  for (const std::string& path : {model_.path(), bare_.path(), bare_.path("tokenizer.json")}) {
    SCOPED_TRACE(path);
    auto ids = [&](std::vector<std::string> more) {
      std::vector<std::string> args{"tokenize", path, "--text"};
      args.insert(args.end(), more.begin(), more.end());
      return join(json::value_to<std::vector<std::int32_t>>(vitrine_json(args).at("ids")));
    };
    // Letters are 9.., then the bytes of é, then the merges from 37 on: he ll hell hello Ġhello.
    EXPECT_EQ(ids({"hello hello"}), "1,40,41");
    EXPECT_EQ(ids({"hello hello", "--no-special"}), "40,41");
    EXPECT_EQ(ids({"", "--no-special"}), "");
    EXPECT_EQ(ids({"é", "--no-special"}), "35,36");
    EXPECT_EQ(ids({"</s>", "--no-special"}), "6,8,27,7");
    EXPECT_EQ(ids({"</s>", "--no-special", "--parse-special"}), "2");
  }
  json::object a = vitrine_json({"tokenize", model_.path(), "--text", "hello ab"});
  EXPECT_EQ(json::serialize(a.at("pieces")), R"(["<s>","hello"," ","a","b"])");
  Exit e = vitrine({"tokenize", model_.path(), "--text", "hello"});
  EXPECT_EQ(e.code, 0);
  EXPECT_THAT(e.out, HasSubstr("40  \"hello\""));
}

TEST_F(WithTokenizer, Detokenizes) {
  auto text = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"detokenize", bare_.path()});
    return std::string(vitrine_json(args).at("text").as_string());
  };
  EXPECT_EQ(text({"--ids", "40,41,35,36"}), "hello helloé");
  EXPECT_EQ(text({"--ids", "1,40,2"}), "<s>hello</s>");
  EXPECT_EQ(text({"--ids", "1,40,2", "--skip-special"}), "hello");
  EXPECT_EQ(text({"--ids", "35"}), "\xEF\xBF\xBD");
  EXPECT_EQ(vitrine({"detokenize", bare_.path(), "--ids", "40"}).out, "hello\n");
  for (const char* id : {"64", "-1"})
    expect_refused({"detokenize", bare_.path(), "--ids", id}, {"--ids", id, "63"});
  expect_refused({"detokenize", bare_.path(), "--ids", "x"}, {"--ids", "x"});
}

TEST_F(WithTokenizer, ModelWithoutOneSaysSo) {
  expect_refused({"tokenize", kLlama, "--text", "a"}, {"tokenizer"});
  expect_refused({"detokenize", kLlama, "--ids", "5"}, {"tokenizer"});
  expect_refused({"generate", bare_.path(), "--ids", "5"}, {"config.json"});
}

TEST_F(WithTokenizer, GeneratesText) {
  std::vector<std::string> flags{"--max-tokens", "12", "--temperature", "0", "--ignore-eos"};
  std::vector<std::string> args{"generate", model_.path(), "--prompt", "hello world"};
  args.insert(args.end(), flags.begin(), flags.end());
  json::object a = vitrine_json(args);
  ASSERT_TRUE(a.at("text").is_string());
  // <s> hello Ġw or l d
  EXPECT_EQ(a.at("usage").at("prompt_tokens").to_number<int>(), 6);
  Exit plain = vitrine(args);
  EXPECT_EQ(plain.out, std::string(a.at("text").as_string()) + "\n");
  // The same prompt as ids gives the same tokens, and their text is what detokenize says.
  std::vector<std::string> by_ids{"generate", model_.path(), "--ids", "1,40,42,43,20,12"};
  by_ids.insert(by_ids.end(), flags.begin(), flags.end());
  EXPECT_EQ(tokens_of(vitrine_json(by_ids)), tokens_of(a));
  // `run` chats: what the template makes of the prompt, generated raw, is the same.
  Exit shown = vitrine({"template", model_.path(), "--prompt", "hello world", "--json"});
  EXPECT_THAT(shown.err, HasSubstr("brings no chat template"));
  json::object chat = json::parse(shown.out).as_object();
  EXPECT_EQ(chat.at("template").as_string(), "built in (ChatML)");
  EXPECT_THAT(std::string(chat.at("prompt").as_string()),
              testing::EndsWith("user\nhello world<|im_end|>\n<|im_start|>assistant\n"));
  std::vector<std::string> as_ids;
  for (const json::value& id : chat.at("tokens").as_array())
    as_ids.push_back(std::to_string(id.to_number<int>()));
  by_ids[3] = fmt::format("{}", fmt::join(as_ids, ","));
  by_ids.insert(by_ids.end(), {"--stop", "<|im_end|>"});
  plain.out = std::string(vitrine_json(by_ids).at("text").as_string()) + "\n";
  // A prompt as an argument, or from a pipe.
  for (bool piped : {false, true}) {
    std::vector<std::string> run{"run", model_.path()};
    if (!piped) run.push_back("hello world");
    run.insert(run.end(), flags.begin(), flags.end());
    Exit e = vitrine(run, piped ? "hello world" : "");
    EXPECT_EQ(e.code, 0) << e.err;
    EXPECT_EQ(e.out, plain.out);
    EXPECT_THAT(e.err, HasSubstr("tok/s"));
    EXPECT_THAT(e.err, HasSubstr("12 tokens"));
  }
}

TEST_F(WithTokenizer, ChatTemplatesFromFilesAndFlags) {
  auto prompt = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"template", model_.path(), "--prompt", "hello"};
    args.insert(args.end(), more.begin(), more.end());
    Exit e = vitrine(args);
    EXPECT_EQ(e.code, 0) << e.err;
    return e.out;
  };
  model_.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "chat_template": [
                  {"name": "default", "template": "{{ bos_token }}[{{ messages[0].content }}]"},
                  {"name": "tool_use", "template": "tools:{{ tools|length }}"}]})");
  EXPECT_EQ(prompt({}), "<s>[hello]");
  EXPECT_EQ(prompt({"--tools", R"([{"type":"function","function":{"name":"f"}}])"}), "tools:1");
  json::object a = vitrine_json({"template", model_.path(), "--prompt", "a<s>", "--json"});
  std::vector<int> ids;
  for (const json::value& id : a.at("tokens").as_array()) ids.push_back(id.to_number<int>());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 1);  // <s> once: the template's
  model_.write("chat_template.jinja", "{{ x|default('no x') }} {{ messages[-1].content }}");
  EXPECT_EQ(prompt({}), "no x hello");
  EXPECT_EQ(prompt({"--kwargs", R"({"x": 5})"}), "5 hello");
  model_.write("mine.jinja", "{% for m in messages %}{{ m.role }};{% endfor %}");
  EXPECT_EQ(prompt({"--system", "s", "--chat-template", model_.path("mine.jinja")}),
            "system;user;");
  expect_refused({"template", model_.path(), "--kwargs", R"({"messages": 5})"}, {"messages"});
  model_.write("chat_template.jinja", "{{ raise_exception('never') }}");
  expect_refused({"template", model_.path()}, {"never"});
  expect_refused({"run", model_.path(), "hello"}, {"never"});
  model_.write("chat_template.jinja", "\n{% if %}");
  expect_refused({"template", model_.path()}, {"chat_template.jinja", "line 2, column 7"});
}

TEST_F(WithTokenizer, Embeds) {
  json::object a = vitrine_json({"embed", model_.path(), "hello", "hello ab"});
  EXPECT_EQ(a.at("pooling"), "mean");
  EXPECT_EQ(a.at("tokens"), 2 + 5);
  ASSERT_EQ(a.at("data").as_array().size(), 2u);
  auto vector = [](const json::value& one) {
    return json::value_to<std::vector<double>>(one.at("embedding"));
  };
  double squares = 0;
  for (double x : vector(a.at("data").at(1))) squares += x * x;
  EXPECT_NEAR(squares, 1, 1e-5);
  // A line of JSON for each line of the input, in order.
  model_.write("texts", "hello\r\nhello ab\n");
  for (const Exit& e : {vitrine({"embed", model_.path(), "--file", model_.path("texts")}),
                        vitrine({"embed", model_.path()}, "hello\nhello ab")}) {
    EXPECT_EQ(e.code, 0) << e.err;
    std::size_t end = e.out.find('\n');
    EXPECT_EQ(vector(json::parse(e.out.substr(0, end))), vector(a.at("data").at(0)));
    EXPECT_EQ(vector(json::parse(e.out.substr(end + 1))), vector(a.at("data").at(1)));
  }
  json::object ids = vitrine_json({"embed", model_.path(), "--ids", "1,40"});
  EXPECT_EQ(vector(ids.at("data").at(0)), vector(a.at("data").at(0)));
  json::object last =
      vitrine_json({"embed", model_.path(), "hello", "--pooling", "last", "--dimensions", "3"});
  EXPECT_EQ(last.at("pooling"), "last");
  EXPECT_EQ(vector(last.at("data").at(0)).size(), 3u);
  expect_refused({"embed", model_.path(), "a", "--pooling", "cls"}, {"--pooling", "cls", "last"});
  expect_refused({"embed", model_.path(), "a", "--dimensions", "4096"}, {"--dimensions", "4096"});
  expect_refused({"embed", model_.path(), "a", ""}, {"text 2", "empty"});
  expect_refused({"embed", model_.path(), "--file", "no/such"}, {"no/such"});
  expect_refused({"embed", kLlama, "a"}, {"tokenizer"});
}

TEST_F(WithTokenizer, ParsesSpecialTokensOnlyWhenAsked) {
  auto prompt_tokens = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"generate", model_.path(), "--prompt", "</s>", "-n", "1"};
    args.insert(args.end(), more.begin(), more.end());
    return vitrine_json(args).at("usage").at("prompt_tokens").to_number<int>();
  };
  EXPECT_EQ(prompt_tokens({}), 5);
  EXPECT_EQ(prompt_tokens({"--parse-special"}), 2);
}

TEST_F(WithTokenizer, BrokenOneIsAnErrorWhereItIsNeeded) {
  model_.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": 5}})");
  expect_refused({"tokenize", model_.path(), "--text", "a"}, {"vocab"});
  expect_refused({"generate", model_.path(), "--prompt", "a"}, {"vocab"});
  json::object a = vitrine_json({"inspect", model_.path()});
  EXPECT_TRUE(a.at("tokenizer").is_null());
  EXPECT_THAT(std::string(a.at("tokenizer_error").as_string()), HasSubstr("vocab"));
  EXPECT_TRUE(a.at("memory").is_object());
}

}  // namespace
}  // namespace vitrine::test
